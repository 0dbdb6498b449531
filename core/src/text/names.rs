//! Lists of names, and suggestions for misspelt names.

/// The parts of a text between commas, without the spaces around them. Empty parts are left out.
#[must_use]
pub fn list(text: &str) -> Vec<String> {
    let parts = text.split(',').map(str::trim);
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// The known name that is most similar to a name, as a suggestion; `None` if no known name is similar. A name is
/// similar if one letter differs, or at most a third of the letters. Case and underscores make no difference.
#[must_use]
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
    let name = plain(name);
    let longest = known.iter().map(|known| known.len()).max()?;
    if name.chars().count() > 2 * longest {
        // More letters would differ than any known name has.
        return None;
    }
    let distance = |known: &&str| strsim::osa_distance(&name, &plain(known));
    known
        .iter()
        .map(|known| (distance(known), *known))
        .min()
        .filter(|(distance, known)| 3 * distance <= known.len().max(3))
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_is_recognized_and_another_word_is_not() {
        let known = ["window", "group_by", "settle", "part"];
        for (name, expected) in [
            ("windows", Some("window")),
            ("widnow", Some("window")),
            ("groupBy", Some("group_by")),
            ("groupby", Some("group_by")),
            ("settle_ms", Some("settle")),
            ("prat", Some("part")),
            ("concurrency", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, &known), expected, "{name}");
        }
    }
}
