//! Compares the fold with a plain reader of the same bytes, which uses serde_json. Both must return
//! the same table or the same error, wherever the bytes are split.
//!
//! `docs/testing.md` has the command of the full run.

use std::collections::BTreeMap;
use std::path::Path;

use crate::plain::checks;
use proptest::prelude::*;
use proptest::test_runner::Config;
use tallyfold::{Code, Frame};
use tallyfold_engine::HashKeys;

/// How many sequences of choices there are.
const SEEDS: u64 = 400;

/// How many damaged documents are made from each good one.
const CHANGED: usize = 4;

/// A quarter of the configured cases, because each case has five documents.
fn config() -> Config {
    let config = Config::default();
    Config { cases: config.cases / 4, ..config }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_document_is_read_as_by_serde_json(choices in prop::collection::vec(any::<u8>(), 0..1_600)) {
        checks::chosen_documents(&choices, CHANGED);
    }
}

/// Choices that are the same in each run.
fn fixed_choices(seed: u64) -> Vec<u8> {
    let keys = HashKeys::from_seed(seed);
    (0..1_600_u32).map(|number| keys.hash(&number.to_le_bytes()) as u8).collect()
}

/// What the documents are, so that the comparison is not one of broken bodies with each other.
#[test]
fn the_documents_are_of_every_kind() {
    let mut said = BTreeMap::<Option<&str>, usize>::new();
    let mut groups = 0;
    for seed in 0..SEEDS {
        for outcome in checks::chosen_documents(&fixed_choices(seed), CHANGED) {
            groups = groups.max(outcome.as_ref().map_or(0, Frame::len));
            *said.entry(outcome.err().map(|error| error.code().as_str())).or_default() += 1;
        }
    }
    let documents = SEEDS as usize * (1 + CHANGED);
    assert!(said[&None] > documents / 5, "{said:?}");
    assert!(groups > 30, "{groups} groups");
    let never: Vec<_> =
        OF_BODIES.iter().filter(|code| !said.contains_key(&Some(code.as_str()))).collect();
    assert!(never.is_empty(), "{never:?} in {said:?}");
}

/// The errors that the bytes of a body can cause, except errors at the very beginning, which no
/// document has.
const OF_BODIES: [Code; 19] = [
    Code::TruncatedBody,
    Code::InvalidJson,
    Code::InvalidUtf8,
    Code::LoneSurrogate,
    Code::TrailingBytes,
    Code::DuplicateKey,
    Code::MissingField,
    Code::WrongType,
    Code::InvalidCount,
    Code::CountOverflow,
    Code::SumOverflow,
    Code::WindowMismatch,
    Code::DimensionMismatch,
    Code::RepeatedCombination,
    Code::DepthLimit,
    Code::StringLimit,
    Code::KeyLimit,
    Code::BodyLimit,
    Code::GroupLimit,
];

/// The seeds of the fuzz targets, and what fuzzing has found.
#[test]
#[expect(clippy::disallowed_methods, reason = "seeds are files")]
fn the_seeds_of_the_fuzz_targets_pass() {
    let mut ran = 0;
    for (target, check) in [
        ("fold", checks::chosen_body as fn(&[u8])),
        ("documents", |data| drop(checks::chosen_documents(data, 2))),
        ("digits", checks::digits),
        ("text", checks::text),
        ("timestamps", checks::timestamps),
        ("table_json", checks::table_json),
    ] {
        let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds").join(target);
        for seed in std::fs::read_dir(seeds).expect("each target has seeds") {
            let path = seed.expect("a folder that can be read").path();
            println!("{}", path.display());
            check(&std::fs::read(path).expect("a seed can be read"));
            ran += 1;
        }
    }
    assert!(ran > 100, "{ran} seeds");
}
