//! Values that are written as text: lengths of time, pairs, lists.

use tallyfold::arguments::{Kind, Value};

use super::given::Raw;

/// Reads what was written as that kind; `None` if it is something else.
pub(crate) fn read(raw: &Raw, kind: Kind) -> Option<Value> {
    match (kind, raw) {
        (Kind::Text | Kind::Address | Kind::Instant | Kind::Step, Raw::Text(text)) => {
            Some(Value::Text(text.clone()))
        }
        // Such as an address with a password, which is read from elsewhere.
        (Kind::Text | Kind::Address, Raw::Secret(secret)) => {
            Some(Value::Text(secret.expose().to_owned()))
        }
        (Kind::Secret, Raw::Secret(secret)) => Some(Value::Secret(secret.clone())),
        (Kind::Secret, Raw::Text(text)) => Some(Value::Secret(text.clone().into())),
        (Kind::Flag, Raw::Flag(flag)) => Some(Value::Flag(*flag)),
        (Kind::Flag, Raw::Text(text)) => text.parse().ok().map(Value::Flag),
        (Kind::Whole, Raw::Whole(number)) => Some(Value::Whole(*number)),
        (Kind::Whole, Raw::Text(text)) => whole(text).map(Value::Whole),
        (Kind::Patience, Raw::Text(text)) if text == "none" => Some(Value::Endless),
        (Kind::Milliseconds | Kind::Patience, Raw::Text(text)) => {
            milliseconds(text).map(|ms| Value::Whole(ms.into()))
        }
        (Kind::Texts, Raw::Text(text)) => Some(Value::Texts(list(text))),
        (Kind::Texts, Raw::List(items)) => texts(items).map(Value::Texts),
        (Kind::Pair, Raw::Text(text)) => {
            let (one, other) = text.split_once('/')?;
            Some(Value::Pair([whole(one)?, whole(other)?]))
        }
        (Kind::Pair, Raw::List(items)) => match items[..] {
            [Raw::Whole(one), Raw::Whole(other)] => Some(Value::Pair([one, other])),
            _ => None,
        },
        (Kind::Mapping, Raw::Table(given)) => {
            let pairs = given.iter().map(|(name, setting)| {
                let text = match &setting.raw {
                    Raw::Text(text) => text.clone(),
                    Raw::Secret(secret) => secret.expose().to_owned(),
                    _ => return None,
                };
                Some([name.to_owned(), text])
            });
            let pairs: Option<Vec<[String; 2]>> = pairs.collect();
            Some(Value::Texts(pairs?.into_iter().flatten().collect()))
        }
        _ => None,
    }
}

/// The parts of a text between commas, without the spaces around them.
pub(crate) fn list(text: &str) -> Vec<String> {
    let parts = text.split(',').map(str::trim);
    parts
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}

/// A length of time with its unit: `500ms`, `30s`, `15m`, `2h`, `7d`, or several: `1h30m`.
pub(crate) fn milliseconds(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut sum = 0_u64;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let unit = unit_ms(&rest[..letters])?;
        rest = &rest[letters..];
        sum = sum.checked_add(number.checked_mul(unit)?)?;
    }
    (!text.is_empty()).then_some(sum)
}

fn unit_ms(unit: &str) -> Option<u64> {
    Some(match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        "w" => 604_800_000,
        _ => return None,
    })
}

fn whole(text: &str) -> Option<i128> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

fn texts(items: &[Raw]) -> Option<Vec<String>> {
    let texts = items.iter().map(|item| match item {
        Raw::Text(text) => Some(text.clone()),
        _ => None,
    });
    texts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_have_units() {
        for (text, expected) in [
            ("500ms", Some(500)),
            ("30s", Some(30_000)),
            ("1h30m", Some(5_400_000)),
            ("2w", Some(1_209_600_000)),
            ("0s", Some(0)),
            ("", None),
            ("30", None),
            ("s", None),
            ("-1s", None),
            ("1.5h", None),
            ("1 h", None),
            ("1H", None),
            ("1é", None),
            ("99999999999999999999s", None),
            ("18446744073709551615w", None),
        ] {
            assert_eq!(milliseconds(text), expected, "{text}");
        }
    }

    #[test]
    fn numbers_have_only_digits() {
        for text in ["", "-", "+5", "1_000", "1e3", "٣"] {
            assert_eq!(whole(text), None, "{text}");
        }
        assert_eq!(whole("-12"), Some(-12));
    }
}
