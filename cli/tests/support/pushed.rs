//! Pushes in line protocol, and the sums of what a destination has received.

use std::collections::BTreeMap;
use std::process::Output;

use super::{RANGE, Received, Reply, Service, Sums, stdout, truth};

pub(crate) const BUSY: Reply = Reply::Answer(503, "", "busy");

/// The points of line protocol by series and time. A point that is sent again replaces the earlier one.
pub(crate) type Points = BTreeMap<(String, String), [i128; 3]>;

pub(crate) fn add_points(points: &mut Points, body: &[u8]) {
    for line in std::str::from_utf8(body).unwrap().lines() {
        // Spaces in names are written as `\ `.
        let line = line.replace("\\ ", "_");
        let mut parts = line.split(' ');
        let (series, fields, time) =
            (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
        let mut counts = [0; 3];
        for field in fields.split(',') {
            let (name, value) = field.split_once('=').unwrap();
            let place =
                ["success", "errors", "filtered"].iter().position(|known| *known == name).unwrap();
            counts[place] = value.trim_end_matches('i').parse().unwrap();
        }
        if let Some(before) = points.insert((series.to_owned(), time.to_owned()), counts) {
            assert_eq!(before, counts, "{series} has another value now");
        }
    }
}

pub(crate) fn sums(points: &Points) -> Sums {
    let mut sums = Sums::new();
    for ((series, _), counts) in points {
        let tag = series.split(',').find_map(|tag| tag.strip_prefix("integration="));
        let sum = sums.entry(tag.unwrap().to_owned()).or_default();
        for (sum, count) in sum.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    sums
}

pub(crate) fn expected() -> Sums {
    truth().into_iter().map(|(name, counts)| (name.replace(' ', "_"), counts)).collect()
}

pub(crate) fn taken(requests: &[(Received, Reply)]) -> Points {
    let mut points = Points::new();
    for (request, reply) in requests {
        if matches!(reply, Reply::Answer(204, ..)) {
            add_points(&mut points, &request.body);
        }
    }
    points
}

pub(crate) fn push(service: &Service, format: &str, url: &str, more: &[&str]) -> Output {
    let mut all = vec!["push", "--to", format, url];
    all.extend(RANGE);
    all.extend(more);
    service.tallyfold(&all).output().unwrap()
}

pub(crate) fn report(output: &Output) -> serde_json::Value {
    let all: serde_json::Value = serde_json::from_str(&stdout(output)).unwrap();
    all[0].clone()
}
