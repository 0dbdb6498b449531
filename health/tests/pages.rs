//! Checks of pages have the same findings as checks of tables, even if counts arrive late and are corrected.

use std::collections::BTreeSet;

use crate::fixture::{Fixture, Row, Store, noise};
use proptest::prelude::*;
use tallyfold::Metric;
use tallyfold_health::{Observed, ObservedPages, Page, PageHead, Pages, Rules, State, SumsBy};

const DAY: usize = 24;
const WEEK: usize = 7 * DAY;
/// Seven weeks, and the two days that are checked.
const START: usize = 7 * WEEK;
const END: usize = START + 2 * DAY;
/// The number of windows whose counts may still change.
const OPEN: usize = 3;

/// The standard rules for windows of an hour, and rules of other kinds.
fn rules() -> Rules {
    let standard = Rules::STANDARD.replacen("15m", "1h", 1);
    let more = r#"
        [[rule]]
        name = "one integration"
        kind = "rate"
        by = ["write_key"]
        where = { integration = ["crm", "none"] }
        [[rule]]
        name = "everything"
        kind = "threshold"
        by = ["write_key", "event_name", "integration", "reason"]
        above = "60%"
        least = 10
        [[rule]]
        name = "an event is new"
        kind = "new"
        by = ["event_name"]
        history = "2w"
        [[rule]]
        name = "an event vanishes"
        kind = "vanished"
        by = ["event_name"]
        over = "6h"
        history = "3d"
        [[rule]]
        name = "long windows"
        kind = "volume"
        window = "3h"
        by = ["write_key"]
    "#;
    Rules::parse(&(standard + more)).unwrap()
}

const SOURCES: [&str; 3] = ["web", "ios", "pos"];
const EVENTS: [&str; 3] = ["view", "order", "batch"];
const INTEGRATIONS: [&str; 3] = ["crm", "ads", "lake"];

/// Returns the rows of a window, for delivery and ingestion. Several incidents begin after [`START`]. `part` is how many quarters
/// of the events are known: fewer than 4 if the window's counts may still change.
fn rows(seed: u64, slot: usize, part: u64) -> [Vec<Row>; 2] {
    let (mut delivered, mut ingested) = (Vec::new(), Vec::new());
    let since = slot.checked_sub(START);
    let during = |from: usize, to: usize| since.is_some_and(|since| (from..to).contains(&since));
    for (source, write_key) in SOURCES.into_iter().enumerate() {
        for (event, event_name) in EVENTS.into_iter().enumerate() {
            if event_name == "batch" && slot % DAY != 3 {
                continue;
            }
            let name = seed ^ (slot * 64 + source * 8 + event) as u64;
            let busy = 60 + 40 * ((slot % DAY).min(12) as u64) / 12;
            let mut arrived = busy * (3 - event as u64) + noise(name, 40);
            if during(5, 12) && (source as u64 == seed % 3) {
                arrived = 0;
            }
            if during(15, 40) && source as u64 == (seed + 1) % 3 {
                arrived /= 2;
            }
            let arrived = arrived * part / 4;
            if arrived > 0 {
                ingested.push((vec![write_key, event_name], [arrived, 0, 0]));
            }
            for (place, integration) in INTEGRATIONS.into_iter().enumerate() {
                let name = name.wrapping_mul(31) + place as u64;
                let twice = during(20, 30) && place as u64 == (seed / 3) % 3;
                let sent = if twice { 2 * arrived } else { arrived };
                let attempts_per_error = if during(8, 18) && place == 0 { 3 } else { 40 };
                let errors = noise(name, 2 + sent / attempts_per_error).min(sent);
                let filtered = noise(name + 7, 2 + sent / 30).min(sent - errors);
                let key = |reason| vec![write_key, event_name, integration, reason];
                if sent > 0 {
                    delivered.push((key(""), [sent - errors - filtered, errors, 0]));
                }
                if filtered > 0 {
                    let reason = if during(25, 48) { "schema" } else { "consent" };
                    delivered.push((key(reason), [0, 0, filtered]));
                }
            }
        }
    }
    if during(30, 48) {
        delivered.push((vec!["web", "fresh", "crm", ""], [30 * part, 0, 0]));
    }
    if slot.is_multiple_of(50) {
        // Pages keep rows without events.
        delivered.push((vec!["pos", "rare", "crm", "none"], [0; 3]));
    }
    [delivered, ingested]
}

fn fixture(metric: Metric) -> Fixture {
    match metric {
        Metric::EventDelivery => {
            Fixture::delivery(&["write_key", "event_name", "integration", "reason"])
        }
        Metric::EventIngestion => {
            Fixture::new("event_ingestion", &["write_key", "event_name"], 3_600)
        }
    }
}

fn fixtures() -> [Fixture; 2] {
    [Metric::EventDelivery, Metric::EventIngestion].map(fixture)
}

/// Adds windows to fixtures, or replaces them. The counts of the last windows may still change.
fn add(both: &mut [Fixture; 2], seed: u64, windows: impl Iterator<Item = usize>, end: usize) {
    for slot in windows {
        let age = end - slot;
        let part = if age <= OPEN { age as u64 } else { 4 };
        let off = noise(seed + slot as u64, 40) / 39;
        for (fixture, rows) in both.iter_mut().zip(rows(seed, slot, part)) {
            fixture.add(slot, age <= OPEN, off, &rows);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2, ..ProptestConfig::default() })]

    #[test]
    fn checks_of_pages_have_the_findings_of_checks_of_tables(
        seed in 0..1_000_u64,
        late in prop::collection::btree_map(START - 2 * DAY..END - 2, 2..20_usize, 0..6),
        skips in prop::collection::vec(1..4_usize, 12),
    ) {
        let rules = rules();
        // Some windows can't be read at first.
        let is_known = |slot: usize, end: usize| late.get(&slot).is_none_or(|by| slot + by <= end);
        let mut stores = [Metric::EventDelivery, Metric::EventIngestion]
            .map(|metric| Store::new(&rules, metric));
        let (mut all, mut settled) = (fixtures(), BTreeSet::new());
        let mut states = [State::default(), State::default()];
        let mut end = START;
        let mut found = 0;
        for skip in skips {
            let known = || (0..end).filter(|slot| is_known(*slot, end));
            let mut new = fixtures();
            for both in [&mut new, &mut all] {
                add(both, seed, known().filter(|slot| !settled.contains(slot)), end);
            }
            for (store, fixture) in stores.iter_mut().zip(&new) {
                store.add(&fixture.table());
            }
            let tables = all.each_ref().map(Fixture::table);
            settled.extend(known().filter(|slot| end - slot > OPEN));
            let heads = stores.each_ref().map(Store::heads);
            let pages = [0, 1].map(|side| stores[side].pages(&heads[side]));
            let observed = Observed { delivery: Some(&tables[0]), ingestion: Some(&tables[1]) };
            let kept = ObservedPages { delivery: Some(&pages[0]), ingestion: Some(&pages[1]) };
            let now = fixture(Metric::EventDelivery).instant(end);
            let whole = rules.check(&observed, &states[0], now).unwrap();
            let paged = rules.check_pages(&kept, &states[1], now).unwrap();
            prop_assert_eq!(&paged, &whole);
            prop_assert_eq!(paged.state.to_json(), whole.state.to_json());
            for (pages, table) in pages.iter().zip(&tables) {
                prop_assert_eq!(pages.reconciliation(), table.reconciliation());
                prop_assert_eq!(pages.windows().collect::<Vec<_>>(), table.windows());
            }
            found += whole.findings.len();
            states = [whole.state, paged.state];
            end += skip;
        }
        prop_assert!(found > 10);
    }
}

#[test]
fn a_replay_of_pages_has_the_findings_of_a_replay_of_tables() {
    let rules = rules();
    let mut both = fixtures();
    add(&mut both, 5, 0..END, END);
    let tables = both.each_ref().map(Fixture::table);
    let mut stores =
        [Metric::EventDelivery, Metric::EventIngestion].map(|metric| Store::new(&rules, metric));
    for (store, table) in stores.iter_mut().zip(&tables) {
        store.add(table);
    }
    let heads = stores.each_ref().map(Store::heads);
    let pages = [0, 1].map(|side| stores[side].pages(&heads[side]));
    let observed = Observed { delivery: Some(&tables[0]), ingestion: Some(&tables[1]) };
    let kept = ObservedPages { delivery: Some(&pages[0]), ingestion: Some(&pages[1]) };
    let range = fixture(Metric::EventDelivery).range(START, END);
    let replay = rules.replay(&observed, range).unwrap();
    assert!(replay.findings.len() > 10);
    assert_eq!(rules.replay_pages(&kept, range).unwrap(), replay);
}

/// Returns a page of a few windows with extreme counts.
fn page() -> Vec<u8> {
    let mut fixture = fixture(Metric::EventDelivery);
    let row = |name, counts| (vec!["web", name, "crm", ""], counts);
    fixture.add(0, false, 0, &[row("é", [u64::MAX / 4, 0, 1]), row("a", [0; 3])]);
    fixture.add(2, false, 1, &[row("a", [1 << 61, 1 << 60, 300])]);
    fixture.add(3, true, 0, &[]);
    let sums = rules().sums(Metric::EventDelivery);
    Page::of_table(&fixture.table(), &[]).unwrap().to_bytes(&sums)
}

#[test]
fn a_page_is_read_back_and_damage_is_found() {
    let sums = rules().sums(Metric::EventDelivery);
    let whole = page();
    assert_eq!(Page::parse(&whole).unwrap().to_bytes(&sums), whole);
    // Parsing checks the head. The counts are checked when they are read.
    let head = PageHead::parse(&whole).unwrap();
    assert!(head.has(&sums) && head.windows().count() == 3 && head.settled().count() == 2);
    let mut store = Store::new(&rules(), Metric::EventDelivery);
    let now = fixture(Metric::EventDelivery).instant(4);
    store.pages.insert(0, whole.clone());
    let check = |store: &Store, head: PageHead| {
        let heads = [head];
        let pages = Pages::new(&heads, &sums, store).unwrap();
        let observed = ObservedPages { delivery: Some(&pages), ingestion: None };
        let check = rules().check_pages(&observed, &State::default(), now);
        let failed = pages.failed().map(|(page, _)| page);
        assert_eq!(failed, check.is_err().then_some(0));
        check
    };
    let expected = check(&store, head).unwrap();
    let mut found = 0;
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        let Ok(head) = PageHead::parse(&damaged) else {
            continue;
        };
        store.pages.insert(0, damaged);
        match check(&store, head) {
            // The check did not need the damaged bytes.
            Ok(checked) => assert_eq!(checked, expected, "byte {at}"),
            Err(_) => found += 1,
        }
    }
    assert!(found > 100, "{found} bytes");
    for length in 0..whole.len() {
        // Sums can be computed from the rows, which come first.
        if let Ok(page) = Page::parse(&whole[..length]) {
            assert_eq!(page.to_bytes(&sums), whole, "{length} bytes");
        }
    }
    let later = [b"tallyfold-page/2\n", &whole[17..]].concat();
    let error = PageHead::parse(&later).unwrap_err();
    assert!(PageHead::is_later(&error), "{error}");
}

#[test]
fn overlapping_pages_and_pages_without_sums_are_refused() {
    let store = Store::new(&rules(), Metric::EventDelivery);
    let head = PageHead::parse(&page()).unwrap();
    let sums: Vec<SumsBy> = rules().sums(Metric::EventDelivery);
    for (heads, why) in [(vec![], "want a page"), (vec![head.clone(), head.clone()], "overlap")] {
        let error = Pages::new(&heads, &sums, &store).err().unwrap();
        assert!(error.message().contains(why), "{error}");
    }
    let other = Rules::parse("[[rule]]\nname = 'x'\nkind = 'silent'\nby = ['write_key', 'reason']");
    let other = other.unwrap().sums(Metric::EventDelivery);
    assert!(!head.has(&other));
    let heads = [head];
    let error = Pages::new(&heads, &other, &store).err().unwrap();
    assert!(error.message().contains("sums"), "{error}");
}
