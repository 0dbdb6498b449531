//! The messages for an Alertmanager (API v2, `POST /api/v2/alerts`).
//!
//! Its alerts end by themselves at `endsAt`. So each run sends all firing alerts again, with an end after the next few
//! runs. When an alert is over, its labels are sent once more with an end in the past.

use std::collections::BTreeMap;

use serde::Serialize;
use tallyfold::Timestamp;

use super::alert::{Alert, Alerts, News};

/// The path of the API below the address of an Alertmanager.
pub(crate) const PATH: &str = "/api/v2/alerts";

/// An alert as the API takes it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Posted<'a> {
    labels: &'a BTreeMap<String, String>,
    annotations: Annotations<'a>,
    starts_at: &'a str,
    ends_at: String,
}

#[derive(Serialize)]
struct Annotations<'a> {
    summary: &'a str,
    query: &'a str,
}

/// The message with all firing alerts and with the ends of those that were sent before and are over; `None` if there is
/// nothing to send.
pub(crate) fn message(news: &News, told: &Alerts, lifetime_ms: i64) -> Option<String> {
    let until = Timestamp::from_unix_ms(news.now.unix_ms().saturating_add(lifetime_ms));
    let until = until.unwrap_or(news.now).to_string();
    let over = news.over(told);
    let firing = news.firing(told);
    // An alert with other labels, such as another severity, is a new alert, and the earlier one is over.
    let relabeled = told.iter().filter(|(id, alert)| {
        let now = firing.get(*id);
        now.is_some_and(|now| now.labels != alert.labels)
    });
    let relabeled = relabeled.map(|(_, alert)| posted(alert, &news.now.to_string()));
    let now = firing.values().map(|alert| posted(alert, &until));
    let ended = over.iter().map(|(_, over)| {
        // What ends in the future goes on until then.
        let at = over.at.min(news.now);
        posted(&over.alert, &at.to_string())
    });
    let all: Vec<Posted<'_>> = now.chain(ended).chain(relabeled).collect();
    // Plain texts, so this can't fail.
    (!all.is_empty()).then(|| serde_json::to_string(&all).unwrap_or_default())
}

fn posted<'a>(alert: &'a Alert, ends_at: &str) -> Posted<'a> {
    Posted {
        labels: &alert.labels,
        annotations: Annotations {
            summary: &alert.sentence,
            query: &alert.query,
        },
        starts_at: &alert.since,
        ends_at: ends_at.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;
    use crate::health::alert::Resolved;

    fn alert(rule: &str) -> Alert {
        Alert {
            rule: rule.to_owned(),
            severity: "critical".to_owned(),
            labels: BTreeMap::from([("alertname".to_owned(), rule.to_owned())]),
            sentence: format!("{rule} is wrong"),
            query: "q".to_owned(),
            since: "2026-01-01T00:00:00Z".to_owned(),
            finding: "{}".to_owned(),
        }
    }

    #[test]
    fn what_fires_ends_later_and_what_is_over_has_ended() {
        let at = |text: &str| Timestamp::parse(text).unwrap();
        let now = at("2026-01-01T02:00:00Z");
        let resolved = |text: &str| Resolved {
            at: at(text),
            sentence: "over".to_owned(),
            finding: "{}".to_owned(),
        };
        let news = News {
            firing: Alerts::from([("a".to_owned(), alert("a"))]),
            held: Alerts::new(),
            resolved: BTreeMap::from([
                ("b".to_owned(), resolved("2026-01-01T01:00:00Z")),
                // Nobody was told of it.
                ("d".to_owned(), resolved("2026-01-01T01:00:00Z")),
                // By a clock that is ahead.
                ("e".to_owned(), resolved("2026-01-01T03:00:00Z")),
            ]),
            silenced: BTreeSet::from(["f".to_owned()]),
            is_cut: false,
            now,
        };
        let told = ["a", "b", "c", "e", "f"].map(|id| (id.to_owned(), alert(id)));
        let message = message(&news, &told.clone().into(), 3_600_000).unwrap();
        let sent: Value = serde_json::from_str(&message).unwrap();
        let ends: Vec<[&str; 3]> = sent
            .as_array()
            .unwrap()
            .iter()
            .map(|one| {
                [
                    &one["labels"]["alertname"],
                    &one["annotations"]["summary"],
                    &one["endsAt"],
                ]
                .map(|text| text.as_str().unwrap())
            })
            .collect();
        assert_eq!(
            ends,
            [
                ["a", "a is wrong", "2026-01-01T03:00:00Z"],
                ["b", "over", "2026-01-01T01:00:00Z"],
                // Its rule is gone: it ends now.
                ["c", "c is wrong", "2026-01-01T02:00:00Z"],
                ["e", "over", "2026-01-01T02:00:00Z"],
            ]
        );
        assert_eq!(sent[0]["startsAt"], json!("2026-01-01T00:00:00Z"));
        // What is silenced goes on: it is neither sent again nor over, and ends by itself.
        let kept: Vec<String> = news.kept(&told.clone().into()).into_keys().collect();
        assert_eq!(kept, ["f"]);
        // Of what was left out, nobody knows whether it is over.
        let cut = News {
            is_cut: true,
            ..news.clone()
        };
        let over = cut.over(&told.clone().into());
        let over: Vec<&str> = over.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(over, ["b", "e"]);
        let kept: Vec<String> = cut.kept(&told.into()).into_keys().collect();
        assert_eq!(kept, ["c", "f"]);
        let nothing = News {
            firing: Alerts::new(),
            ..news
        };
        assert!(super::message(&nothing, &Alerts::new(), 1).is_none());
    }
}
