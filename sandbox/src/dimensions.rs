//! The dimensions by which counts can be grouped (service reference 2.4).

/// The names of the dimensions, in the order in which an event holds their values.
pub(crate) const NAMES: [&str; 4] = ["event_name", "write_key", "integration", "reason"];

/// The place of `reason`, which event ingestion does not have.
pub(crate) const REASON: usize = 3;

/// The places of these names; `None` if there are none, if one is unknown, or if one occurs twice.
pub(crate) fn places<S: AsRef<str>>(names: &[S]) -> Option<Vec<usize>> {
    let mut places = Vec::new();
    for name in names {
        let place = NAMES.iter().position(|known| *known == name.as_ref())?;
        if places.contains(&place) {
            return None;
        }
        places.push(place);
    }
    Some(places).filter(|places| !places.is_empty())
}
