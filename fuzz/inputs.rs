//! Inputs from people and from other programs: rules, configurations, requests of web apps, headers, compressed bodies.

use std::io::{self, Read};

use tallyfold::arguments::toml::{Document, Table};
use tallyfold::{
    Dimension, Now, PageQuestion, PageRequest, PagesOptions, Permission, QueryOptions, Step, Window,
};
use tallyfold_health::Rules;

use crate::stored::machine;

#[path = "../cli/src/host/body.rs"]
#[allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "it belongs to the command")]
mod body;

const NOW: Now = Now { monotonic_ms: 0, unix_ms: 1_767_225_600_000 };

/// Parses rules. An error must have a message.
pub fn rules(data: &[u8]) {
    if let Err(error) = Rules::parse(&String::from_utf8_lossy(data)) {
        assert!(!error.to_string().is_empty());
    }
}

/// Reads TOML files, and each value as every kind of value that a configuration may have.
pub fn configuration(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(document) = Document::parse(None, &text) {
        walk(&document.root());
    }
}

fn walk(table: &Table<'_>) {
    for entry in table.entries() {
        drop((entry.text("a text"), entry.texts("texts"), entry.flag("a flag")));
        drop((entry.whole("a number"), entry.within(1, 9, "a number")));
        drop((entry.timestamp_text("a time"), entry.number_text("a number")));
        drop(entry.unknown_key(&["known"]));
        drop(entry.items("items"));
        if let Ok(table) = entry.table("a table") {
            walk(&table);
        }
    }
}

/// Reads requests of web apps: a line with the method and the target, a line for each header, an empty line, and the body.
pub fn questions(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (head, body) = text.split_once("\n\n").unwrap_or((&text, ""));
    let mut lines = head.lines();
    let (method, target) = lines.next().unwrap_or_default().split_once(' ').unwrap_or_default();
    let headers: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(": ")).collect();
    let options = PagesOptions::default().hand_out_tokens(true).audit_logs(true);
    let asked = PageRequest {
        method,
        target,
        headers: &headers,
        body: body.as_bytes(),
        permission: &Permission::Everything,
    };
    drop(PageQuestion::read(&options, "https://cluster.example", asked, NOW));
}

/// Reads headers of responses. Whatever they contain, the call must end with an error after a limited number of steps.
pub fn headers(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.lines();
    let status = lines.next().and_then(|line| line.parse().ok()).unwrap_or(503);
    let headers: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(": ")).collect();
    let window = Window::parse("2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z");
    let query = QueryOptions::new(window.expect("a window"), &[Dimension::Integration]);
    let mut call = machine().event_delivery(&query).expect("a usual query");
    let mut now = NOW;
    for _ in 0..1_000 {
        match call.step(now) {
            Ok(Step::Send(_)) => {
                if call.head(status, &headers) == Ok(true) {
                    drop(call.end());
                }
            }
            Ok(Step::Wait { ms }) => {
                now.monotonic_ms += u64::from(ms);
                now.unix_ms += i64::from(ms);
            }
            Ok(step) => panic!("a call alone gets {step:?}"),
            Err(_) => return,
        }
    }
    panic!("the call never ends");
}

/// Decompresses bodies. The size of the chunks must make no difference, and flate2 must get the same bytes.
pub fn gunzip(data: &[u8]) {
    let Some((size, bytes)) = data.split_first() else {
        return;
    };
    let whole = decoded(bytes, bytes.len().max(1));
    let cut = decoded(bytes, usize::from(*size).max(1));
    assert_eq!(whole.as_ref().ok(), cut.as_ref().ok());
    if let Ok(text) = whole {
        let mut other = Vec::new();
        let mut reader = flate2::read::GzDecoder::new(bytes);
        reader.read_to_end(&mut other).expect("one whole member");
        assert_eq!(text, other);
    }
}

fn decoded(bytes: &[u8], size: usize) -> io::Result<Vec<u8>> {
    let mut body = body::Body::of(Some("gzip"));
    let mut out = Vec::new();
    let mut take = |piece: &[u8]| -> io::Result<()> {
        out.extend_from_slice(piece);
        Ok(())
    };
    for chunk in bytes.chunks(size) {
        body.decode(chunk, &mut take)?;
    }
    body.end(&mut take)?;
    Ok(out)
}
