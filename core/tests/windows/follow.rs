//! Windows as they close, late events, failures, and clocks that jump.

use std::collections::BTreeMap;

use tallyfold::{
    Code, CountTable, Counts, Deltas, Dimension, Drive, Follow, FollowOptions, FollowStep, Frame,
    Metric, Now, Patience, Revision, Step, Timestamp, Window,
};

use super::world::{
    DIMENSIONS, Random, Trouble, World, assert_same_counts, instant, new_year, step, window,
};
use crate::support::{ADDRESS, NEW_YEAR_MS, at, options as client_options};

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;

/// With these options, a reading fails once its own retries are used up.
fn options(step_text: &str) -> FollowOptions {
    let metric = Metric::EventDelivery;
    FollowOptions::new(metric, new_year(), &DIMENSIONS, step(step_text))
        .patience_ms(Patience::Milliseconds(0))
}

fn follow(world: &World, options: FollowOptions) -> Follow {
    world.client.follow(&options).expect("good options")
}

/// Advances both clocks.
fn pass(world: &mut World, ms: u64) {
    world.now.monotonic_ms += ms;
    world.now.unix_ms += ms as i64;
}

/// Reads all windows that are due. Returns the revisions and the next wait; `None` at the end of
/// the follow.
fn read_due(
    world: &mut World,
    follow: &mut Follow,
    mut trouble: impl FnMut(Window) -> Option<Trouble>,
) -> (Vec<Revision>, Option<u64>) {
    let mut revisions = Vec::new();
    loop {
        match follow.next(world.now) {
            FollowStep::Drive(Drive { task, mut call, window }) => {
                let trouble = trouble(window);
                world.drive(&mut call, window, trouble);
                match follow.settle(task, &mut call, world.now) {
                    Ok(Some(revision)) => {
                        assert_eq!(revision.window, window);
                        revisions.push(revision);
                    }
                    Ok(None) => panic!("the call was driven"),
                    Err(error) => assert!(trouble.is_some(), "{error}"),
                }
            }
            FollowStep::Wait { ms } => {
                assert!(ms > 0);
                return (revisions, Some(ms.into()));
            }
            FollowStep::Failed(error) => panic!("{error}"),
            FollowStep::Done => return (revisions, None),
        }
    }
}

fn windows_of(revisions: &[Revision]) -> Vec<Window> {
    revisions.iter().map(|revision| revision.window).collect()
}

/// Counts by dimension values, without groups whose counts are all 0.
type Sums = BTreeMap<Vec<String>, [i128; 3]>;

/// The sums of a caller that only adds changes, and the sums of the newest tables, which must be
/// equal.
#[derive(Default)]
struct RunningSum {
    sums: Sums,
    truth: Sums,
    newest: BTreeMap<Window, CountTable>,
    settled: BTreeMap<Window, bool>,
    revisions: BTreeMap<Window, u32>,
}

impl RunningSum {
    fn add(&mut self, revision: &Revision) {
        for row in revision.changes.rows() {
            let values = row.values().map(str::to_owned).collect();
            let Deltas { success, errors, filtered } = row.delta();
            add(&mut self.sums, values, [success, errors, filtered]);
        }
        for (values, counts) in sums_of(&revision.table) {
            add(&mut self.truth, values, counts);
        }
        let before = self.newest.insert(revision.window, revision.table.clone());
        for (values, counts) in before.iter().flat_map(sums_of) {
            add(&mut self.truth, values, counts.map(|count| -count));
        }
        assert_eq!(self.sums, self.truth);
        let before = self.settled.insert(revision.window, revision.settled);
        assert_ne!(before, Some(true), "a settled window is forgotten");
        let revisions = self.revisions.entry(revision.window).or_default();
        assert_eq!(revision.number, *revisions);
        *revisions += 1;
    }
}

fn add(sums: &mut Sums, values: Vec<String>, counts: [i128; 3]) {
    let mut sum = sums.remove(&values).unwrap_or_default();
    for (sum, count) in sum.iter_mut().zip(counts) {
        *sum += count;
    }
    if sum != [0; 3] {
        sums.insert(values, sum);
    }
}

fn sums_of(table: &CountTable) -> Sums {
    let row = |row: tallyfold::Row<'_, CountTable>| {
        let Counts { success, errors, filtered } = row.counts();
        let values = row.values().map(str::to_owned).collect();
        (values, [success, errors, filtered].map(i128::from))
    };
    table.rows().map(row).filter(|(_, sum)| *sum != [0; 3]).collect()
}

/// Events come late, but no later than windows settle.
#[test]
fn a_week_with_late_events_adds_up_at_every_step() {
    follow_a_week(15 * 60_000, None, false);
    follow_a_week(50 * 60_000, Some(51 * 60_000), false);
    follow_a_week(59 * 60_000, Some(7 * 60_000), false);
}

/// So few events that most windows are read several times with the same counts before a late one arrives.
#[test]
fn a_quiet_day_with_late_events_gives_the_truth() {
    let mut world = World::empty();
    world.now = at(0);
    let mut random = Random(1_976);
    let mut events: Vec<(u64, u64)> = (0..1_976)
        .map(|_| {
            let ms = random.below(DAY * 1_000);
            (ms + random.below(59 * 60_000), ms)
        })
        .collect();
    events.sort_unstable_by(|one, other| other.cmp(one));
    let end = Some(instant(DAY));
    let mut followed = follow(&world, options("5m").end(end));
    let mut sum = RunningSum::default();
    loop {
        let now_ms = (world.now.unix_ms - NEW_YEAR_MS) as u64;
        while events.last().is_some_and(|(seen_ms, _)| *seen_ms <= now_ms) {
            let (_, ms) = events.pop().expect("it was there");
            world.record_one(ms);
        }
        let (revisions, wait) = read_due(&mut world, &mut followed, |_| None);
        revisions.iter().for_each(|revision| sum.add(revision));
        let Some(ms) = wait else { break };
        pass(&mut world, ms);
    }
    let success: i128 = sum.sums.values().map(|[success, ..]| success).sum();
    assert_eq!(success, 1_976);
    assert!(sum.settled.values().all(|settled| *settled));
}

/// Every so often the process ends, and another one goes on from the state after the last revision.
#[test]
fn a_week_that_is_stopped_and_taken_up_loses_and_doubles_nothing() {
    follow_a_week(15 * 60_000, None, true);
    follow_a_week(50 * 60_000, Some(51 * 60_000), true);
}

/// Follows a week in 15-minute windows. A third of the events arrives up to `late_ms` late, some
/// calls fail, and the process sometimes sleeps for hours or is restarted.
fn follow_a_week(late_ms: u64, reread_ms: Option<u64>, is_stopped: bool) {
    const WEEK: u64 = 7 * DAY;
    let mut world = World::empty();
    world.now = at(0);
    let options = |state| {
        options("15m").end(instant(WEEK)).delay_ms(20_000).reread_ms(reread_ms).state(state)
    };
    let mut followed = follow(&world, options(None));
    let mut stops = 0;
    let mut random = Random(7);
    // When the service sees each event, and when the event happened.
    let mut events: Vec<(u64, u64)> = (0..1_500)
        .map(|_| {
            let ms = random.below(WEEK * 1_000);
            let late = random.below(3) == 0;
            (ms + if late { random.below(late_ms) } else { 0 }, ms)
        })
        .collect();
    events.sort_unstable_by(|one, other| other.cmp(one));
    let mut sum = RunningSum::default();
    let (mut steps, mut corrections, mut most_open) = (0, 0, 0);
    loop {
        let now_ms = (world.now.unix_ms - NEW_YEAR_MS) as u64;
        while events.last().is_some_and(|(seen_ms, _)| *seen_ms <= now_ms) {
            let (_, ms) = events.pop().expect("it was there");
            world.record(ms, &mut random);
        }
        let mut faults = Random(random.below(1 << 40));
        let (revisions, wait) = read_due(&mut world, &mut followed, |_| {
            (faults.below(20) == 0).then_some(Trouble::Status(500))
        });
        if is_stopped && random.below(7) == 0 {
            stops += 1;
            followed = follow(&world, options(Some(followed.state())));
            // A monotonic clock begins with the start of a computer or a process.
            world.now.monotonic_ms = random.below(1 << 40);
        }
        for revision in &revisions {
            let newest = sum.newest.get(&revision.window);
            let changed = newest.is_some_and(|newest| *newest != revision.table);
            corrections += u32::from(changed);
            sum.add(revision);
            // The revision has the true counts at the time of the reading.
            assert_same_counts(&revision.table, &world.truth(revision.window));
        }
        most_open = most_open.max(followed.provisional().len());
        steps += 1;
        match wait {
            Some(_) if random.below(200) == 0 => pass(&mut world, 6 * HOUR * 1_000),
            Some(ms) => pass(&mut world, ms),
            None => break,
        }
    }
    assert!(steps > 500 && corrections > 100, "{steps} steps, {corrections} corrections");
    assert_eq!(stops > 50, is_stopped);
    assert!(most_open < 30, "only provisional windows are remembered: {most_open}");
    assert_eq!(sum.settled.len(), 672);
    assert!(sum.settled.values().all(|settled| *settled));
    assert_eq!(sum.sums, sums_of(&world.truth(window(0, WEEK))));
}

/// Read once, when the settle time has passed, nothing is missed either, however late it came.
#[test]
fn after_settling_the_sum_is_the_truth() {
    let mut world = World::empty();
    world.now = at(0);
    let mut follow = follow(
        &world,
        options("15m")
            .end(instant(2 * DAY))
            // Later than the settle time, the first reading is also the last.
            .delay_ms(HOUR * 1_000),
    );
    let mut random = Random(8);
    let mut sum = RunningSum::default();
    loop {
        let now_ms = (world.now.unix_ms - NEW_YEAR_MS) as u64;
        for _ in 0..5 {
            let late_ms = random.below(HOUR * 1_000);
            let ms = now_ms.saturating_sub(late_ms).min(2 * DAY * 1_000 - 1);
            if now_ms < 2 * DAY * 1_000 {
                world.record(ms, &mut random);
            }
        }
        let (revisions, wait) = read_due(&mut world, &mut follow, |_| None);
        for revision in &revisions {
            assert!(revision.settled);
            sum.add(revision);
        }
        let Some(ms) = wait else { break };
        pass(&mut world, ms);
    }
    assert_eq!(sum.sums, sums_of(&world.truth(window(0, 2 * DAY))));
    assert!(world.asked.values().all(|times| *times == 1));
}

#[test]
fn a_window_settles_early_when_two_readings_are_equal_if_asked_to() {
    let mut world = World::empty();
    world.record(0, &mut Random(1));
    world.now = at(15 * 60 - 1);
    let early = options("15m").settle_when_unchanged(true);
    let mut follow = follow(&world, early);
    let first = window(0, 900);
    assert_eq!(read_due(&mut world, &mut follow, |_| None), (vec![], Some(1_000)));
    pass(&mut world, 1_000);
    let (revisions, wait) = read_due(&mut world, &mut follow, |_| None);
    let [one] = revisions.as_slice() else { panic!("one reading") };
    assert!(!one.settled && wait == Some(900_000));
    assert_same_counts(&one.table, &world.truth(first));
    assert_eq!(one.changes.after_totals(), one.table.totals());
    assert_eq!(one.changes.before_coverage(), [first]);

    world.record(1, &mut Random(1));
    pass(&mut world, 900_000);
    let (revisions, _) = read_due(&mut world, &mut follow, |_| None);
    assert_eq!(windows_of(&revisions), [first, window(900, 1_800)]);
    assert!(!revisions[0].settled && revisions[0].changes.rows().len() == 1);
    assert_eq!(revisions[1].table.len(), 0, "a window without events is known to be so");

    pass(&mut world, 900_000);
    let (revisions, _) = read_due(&mut world, &mut follow, |_| None);
    assert_eq!(windows_of(&revisions), [first, window(900, 1_800), window(1_800, 2_700)]);
    for revision in &revisions[..2] {
        assert!(revision.settled && revision.changes.total_delta() == Deltas::default());
    }
    assert_eq!(follow.provisional(), [window(1_800, 2_700)]);
}

/// Late events that come between two equal readings and the end of a window's length are not lost.
#[test]
fn equal_readings_settle_a_window_only_if_they_are_its_length_apart() {
    let mut world = World::empty();
    world.record(0, &mut Random(1));
    world.now = at(15 * 60);
    let quick = options("15m").reread_ms(1_000).end(instant(15 * 60)).settle_when_unchanged(true);
    let mut follow = follow(&world, quick);
    let mut readings = 0;
    for second in 0..=900 {
        let (revisions, _) = read_due(&mut world, &mut follow, |_| None);
        readings += revisions.len();
        assert_eq!(revisions[0].settled, second == 900, "after {second} s");
        pass(&mut world, 1_000);
    }
    assert_eq!(readings, 901);
}

/// Late events are found until the settle time is over, however often readings were equal.
#[test]
fn a_window_is_read_until_its_settle_time_is_over() {
    let mut world = World::empty();
    world.record(0, &mut Random(1));
    world.now = at(15 * 60);
    let patient = options("15m").end(instant(15 * 60));
    let mut follow = follow(&world, patient);
    for quarter in 0..=4 {
        if quarter == 3 {
            world.record(1, &mut Random(1));
        }
        let (revisions, _) = read_due(&mut world, &mut follow, |_| None);
        assert_eq!(revisions[0].settled, quarter == 4, "after {quarter} quarters");
        pass(&mut world, 15 * 60 * 1_000);
    }
    assert!(follow.provisional().is_empty());
}

/// It settles too when its counts still change at the end of the settle time.
#[test]
fn a_window_that_goes_on_changing_settles_by_age() {
    let mut world = World::empty();
    world.now = at(900);
    let end = Some(instant(900));
    let mut follow = follow(&world, options("15m").end(end));
    let mut readings = 0;
    loop {
        world.record(readings, &mut Random(1));
        let (revisions, wait) = read_due(&mut world, &mut follow, |_| None);
        readings += 1;
        assert_eq!(revisions.len(), 1);
        assert_eq!(revisions[0].settled, readings == 5);
        let Some(ms) = wait else { break };
        assert_eq!(ms, 900_000);
        pass(&mut world, ms);
    }
    assert_eq!(readings, 5);
    assert!(matches!(follow.next(world.now), FollowStep::Done));
}

#[test]
fn the_first_and_the_last_window_may_be_short() {
    let mut world = World::with_events(HOUR, 50);
    let mut follow = follow(&world, options("15m").start(instant(100)).end(instant(2_000)));
    let (revisions, wait) = read_due(&mut world, &mut follow, |_| None);
    assert_eq!(wait, None);
    let windows = [window(100, 900), window(900, 1_800), window(1_800, 2_000)];
    assert_eq!(windows_of(&revisions), windows);
    assert!(revisions.iter().all(|revision| revision.settled));
}

#[test]
fn more_dimensions_in_the_requests_change_neither_revisions_nor_states() {
    let all = [&DIMENSIONS[..], &[Dimension::WriteKey]].concat();
    let read = |by: Option<&[Dimension]>| {
        let mut world = World::with_events(HOUR, 500);
        let mut follow = follow(&world, options("15m").end(instant(HOUR)));
        if let Some(by) = by {
            follow.request_by(by).expect("more dimensions");
        }
        let (revisions, wait) = read_due(&mut world, &mut follow, |_| None);
        assert_eq!(wait, None);
        let tables: Vec<String> = revisions.iter().map(|one| one.table.to_json()).collect();
        (tables, follow.state())
    };
    let (tables, state) = read(None);
    assert_eq!(tables.len(), 4);
    assert_eq!(read(Some(&all)), (tables, state));
    let mut follow = follow(&World::empty(), options("15m"));
    for wrong in [&[][..], &DIMENSIONS[..1]] {
        let error = follow.request_by(wrong).expect_err("not all of them");
        assert_eq!(error.kind(), tallyfold::Kind::Config, "{error}");
    }
}

#[test]
fn a_process_that_slept_catches_up_in_order() {
    let mut world = World::with_events(DAY, 200);
    world.now = at(900);
    let mut follow = follow(&world, options("15m"));
    read_due(&mut world, &mut follow, |_| None);
    // The monotonic clock may stand still while the machine sleeps.
    world.now.unix_ms += 6 * HOUR as i64 * 1_000;
    let (revisions, wait) = read_due(&mut world, &mut follow, |_| None);
    let windows: Vec<Window> =
        (0..25).map(|index| window(index * 900, index * 900 + 900)).collect();
    assert_eq!(windows_of(&revisions), windows);
    assert_eq!(wait, Some(900_000));
    // Those of the last hour may still change.
    assert_eq!(follow.provisional(), windows[21..]);
    assert!(
        revisions
            .iter()
            .all(|revision| revision.settled == windows[..21].contains(&revision.window))
    );
}

#[test]
fn a_wall_clock_that_is_set_back_makes_it_wait() {
    let mut world = World::with_events(DAY, 300);
    world.now = at(900);
    let mut follow = follow(&world, options("15m"));
    let (revisions, _) = read_due(&mut world, &mut follow, |_| None);
    assert_eq!(revisions.len(), 1);
    // The window that was read has not even begun: it is not read, and does not settle.
    world.now.unix_ms -= DAY as i64 * 1_000;
    for _ in 0..5 {
        let (revisions, wait) = read_due(&mut world, &mut follow, |_| None);
        assert_eq!((revisions.len(), wait), (0, Some(900_000)), "no wait is longer than a window");
        pass(&mut world, 900_000);
    }
    world.now.unix_ms += DAY as i64 * 1_000;
    let (revisions, _) = read_due(&mut world, &mut follow, |_| None);
    assert_eq!(revisions.len(), 6);
    assert_eq!(revisions[0].window, window(0, 900));
    assert!(revisions[0].settled);
}

#[test]
fn a_reading_that_fails_is_made_again_and_nothing_is_lost() {
    let mut world = World::with_events(DAY, 300);
    world.now = at(900);
    let mut follow = follow(&world, options("15m").reread_ms(60_000).settle_when_unchanged(true));
    let first = window(0, 900);
    let fail = |_| Some(Trouble::Status(500));
    for _ in 0..3 {
        assert_eq!(read_due(&mut world, &mut follow, fail), (vec![], Some(60_000)));
        pass(&mut world, 60_000);
    }
    let FollowStep::Drive(Drive { task, mut call, .. }) = follow.next(world.now) else {
        panic!("a call")
    };
    world.drive(&mut call, first, Some(Trouble::Status(403)));
    let error = follow.settle(task, &mut call, world.now).expect_err("a refusal");
    assert_eq!(error.code(), Code::Forbidden);
    let error = follow.settle(task, &mut call, world.now).expect_err("it was settled");
    assert_eq!(error.code(), Code::OutOfOrder);
    assert_eq!(follow.provisional(), [first]);
    pass(&mut world, 60_000);

    // A failure between two equal readings does not make them less equal.
    let (revisions, _) = read_due(&mut world, &mut follow, |_| None);
    assert!(!revisions[0].settled);
    pass(&mut world, 60_000);
    assert_eq!(read_due(&mut world, &mut follow, fail).0, []);
    pass(&mut world, 900_000);
    let (revisions, _) = read_due(&mut world, &mut follow, |_| None);
    assert!(revisions[0].settled && revisions[0].window == first);
    assert_eq!(world.asked[&first], 7);
}

#[test]
fn windows_that_fail_for_days_are_tried_ever_more_rarely() {
    let mut world = World::with_events(6 * DAY, 300);
    world.now = at(0);
    let mut follow = follow(&world, options("15m"));
    let mut of_days = Vec::new();
    for day in 1..=6 {
        let before = world.requests();
        while world.now.unix_ms < at(day * DAY).unix_ms {
            // The service answers each window with something that cannot be counted.
            let (_, wait) = read_due(&mut world, &mut follow, |_| Some(Trouble::Status(404)));
            pass(&mut world, wait.expect("an endless follow"));
        }
        of_days.push(world.requests() - before);
    }
    // 96 windows close each day, and each is tried about ten times until it has settled.
    assert!(of_days.iter().all(|requests| (96..1_600).contains(requests)), "{of_days:?}");
    while follow.provisional().len() > 4 {
        let (_, wait) = read_due(&mut world, &mut follow, |_| None);
        pass(&mut world, wait.expect("an endless follow"));
    }
}

#[test]
fn after_an_outage_all_windows_are_read_soon() {
    let mut world = World::with_events(3 * DAY, 300);
    world.now = at(0);
    let mut follow = follow(&world, options("15m"));
    while world.now.unix_ms < at(2 * DAY).unix_ms {
        let (_, wait) = read_due(&mut world, &mut follow, |_| Some(Trouble::Cut));
        pass(&mut world, wait.expect("an endless follow"));
    }
    // For a moment, the clock is a year ahead.
    world.now.unix_ms += 365 * DAY as i64 * 1_000;
    if let FollowStep::Drive(Drive { task, mut call, window }) = follow.next(world.now) {
        world.drive(&mut call, window, Some(Trouble::Cut));
        assert!(follow.settle(task, &mut call, world.now).is_err());
    }
    world.now.unix_ms -= 365 * DAY as i64 * 1_000;
    let up_ms = world.now.unix_ms;
    assert!(follow.provisional().len() > 100);
    while follow.provisional().len() > 5 {
        let (_, wait) = read_due(&mut world, &mut follow, |_| None);
        pass(&mut world, wait.expect("an endless follow"));
        assert!(world.now.unix_ms < up_ms + 2 * 900_000);
    }
}

#[test]
fn a_requested_wait_delays_all_windows() {
    let mut world = World::empty();
    world.now = at(DAY);
    let mut follow = follow(&world, options("15m"));
    let begin_ms = world.now.monotonic_ms;
    while world.now.monotonic_ms < begin_ms + 2 * HOUR * 1_000 {
        let (_, wait) = read_due(&mut world, &mut follow, |_| Some(Trouble::Later));
        pass(&mut world, wait.expect("an endless follow"));
    }
    assert_eq!(world.requests(), 1);
}

/// Each response takes two seconds. An hour of windows can't be read again every minute.
#[test]
fn a_slow_service_does_not_keep_new_windows_waiting() {
    let mut world = World::with_events(6 * HOUR, 300);
    world.now = at(0);
    let mut follow = follow(&world, options("1m"));
    while world.now.unix_ms < at(3 * HOUR).unix_ms {
        match follow.next(world.now) {
            FollowStep::Drive(Drive { task, mut call, window }) => {
                pass(&mut world, 2_000);
                world.drive(&mut call, window, None);
                let revision = follow.settle(task, &mut call, world.now);
                let revision = revision.expect("a response").expect("a revision");
                let late_ms = world.now.unix_ms - window.end().unix_ms();
                assert!(revision.number > 0 || late_ms < 200_000, "{window:?}");
            }
            FollowStep::Wait { ms } => pass(&mut world, ms.into()),
            other => panic!("want a call, not {other:?}"),
        }
    }
}

/// A call that was cancelled is due at once, also beside one that is under way.
#[test]
fn a_closed_call_gives_its_window_back() {
    let mut world = World::with_events(HOUR, 100);
    world.now = at(1_800);
    let mut follow = follow(&world, options("15m"));
    let mut drive = || match follow.next(world.now) {
        FollowStep::Drive(Drive { task, call, window }) => (task, call, window),
        other => panic!("want a call, not {other:?}"),
    };
    let (task, mut call, first) = drive();
    let (_, _lost, second) = drive();
    assert_eq!([first, second], [window(0, 900), window(900, 1_800)]);
    assert!(matches!(follow.next(world.now), FollowStep::Wait { ms: 900_000 }));
    call.close();
    assert_eq!(follow.settle(task, &mut call, world.now), Ok(None));
    let (revisions, _) = read_due(&mut world, &mut follow, |_| None);
    assert_eq!(windows_of(&revisions), [first]);
    assert_eq!(revisions[0].number, 0, "a reading without a revision");
}

#[test]
fn waits_fit_a_timer_and_a_start_may_be_far_ahead() {
    let mut world = World::empty();
    world.now = at(0);
    for (step_text, longest) in [("1s", 1_000), ("1d", 86_400_000)] {
        let mut follow = follow(
            &world,
            options(step_text)
                .start(Timestamp::parse("9999-12-30T00:00:00Z").expect("a timestamp"))
                .delay_ms(u64::MAX)
                .settle_ms(u64::MAX),
        );
        let FollowStep::Wait { ms } = follow.next(world.now) else { panic!("a wait") };
        assert_eq!(ms, longest);
    }
}

/// A refusal concerns all windows: one call a minute tries whether it is over, however many windows wait.
#[test]
fn a_refusal_holds_up_the_other_windows() {
    for status in [401, 403] {
        let mut world = World::empty();
        world.now = at(10 * DAY);
        let begin = world.now.monotonic_ms;
        let mut follow = follow(&world, options("15m").end(instant(10 * DAY - 2 * HOUR)));
        while world.now.monotonic_ms < begin + 20 * 60_000 {
            let refuse = |_| Some(Trouble::Status(status));
            let (revisions, wait) = read_due(&mut world, &mut follow, refuse);
            assert!(revisions.is_empty());
            pass(&mut world, wait.expect("it is not done"));
        }
        let asked: u32 = world.asked.values().sum();
        // After a 401, each call tries a second token.
        assert!((20..=42).contains(&asked), "{status}: {asked}");
        let (revisions, _) = read_due(&mut world, &mut follow, |_| None);
        let all = 10 * 96 - 8;
        assert!(revisions.len() > all - 20, "{status}: {}", revisions.len());
    }
}

#[test]
fn wrong_arguments_are_refused() {
    let world = World::empty();
    let refused = |change: fn(&mut FollowOptions)| {
        let mut options = options("15m");
        change(&mut options);
        let error = world.client.follow(&options).expect_err("a refusal");
        (error.code(), error.argument_name().expect("an argument").to_owned())
    };
    let empty = |options: &mut FollowOptions| options.end = Some(new_year());
    assert_eq!(refused(empty), (Code::InvalidWindow, "start".to_owned()));
    let reread = |options: &mut FollowOptions| options.reread_ms = Some(0);
    assert_eq!(refused(reread), (Code::InvalidArgument, "reread_ms".to_owned()));
    let unknown = |options: &mut FollowOptions| options.group_by = Some(vec![Dimension::WriteKey]);
    assert_eq!(refused(unknown), (Code::UnknownDimension, "group_by".to_owned()));
    let client = tallyfold::Machine::new(client_options().cluster_endpoint(None));
    let error = client.expect("one API").follow(&options("15m")).expect_err("no API");
    assert_eq!(error.code(), Code::MissingArgument);
}

/// The time for which counts were the same goes on counting in another process, which counts none
/// of the time between.
#[test]
fn a_state_keeps_for_how_long_counts_were_the_same() {
    let mut world = World::empty();
    world.now = at(900);
    let options = |state| {
        options("15m").reread_ms(300_000).settle_when_unchanged(true).end(instant(900)).state(state)
    };
    let mut followed = follow(&world, options(None));
    let mut settled = Vec::new();
    for _ in 0..6 {
        let (revisions, _) = read_due(&mut world, &mut followed, |_| None);
        settled.extend(revisions.iter().map(|revision| revision.settled));
        pass(&mut world, 300_000);
        let (more, _) = read_due(&mut world, &mut followed, |_| None);
        settled.extend(more.iter().map(|revision| revision.settled));
        // Ten minutes go by in which nobody follows.
        let state = followed.state();
        pass(&mut world, 600_000);
        followed = follow(&world, options(Some(state)));
    }
    // Three times five minutes in which somebody did.
    assert_eq!(settled, [false, false, false, false, false, true]);
}

#[test]
fn a_state_is_read_again_however_far_a_clock_leapt() {
    let mut world = World::empty();
    world.now = at(900);
    let options = |state| options("15m").end(instant(900)).state(state);
    let mut followed = follow(&world, options(None));
    read_due(&mut world, &mut followed, |_| None);
    world.now.monotonic_ms = u64::MAX - 1;
    let (revisions, _) = read_due(&mut world, &mut followed, |_| None);
    assert_eq!((revisions.len(), revisions[0].number), (1, 1));
    let mut again = follow(&world, options(Some(followed.state())));
    world.now.monotonic_ms = 0;
    world.now.unix_ms += 2 * HOUR as i64 * 1_000;
    let (revisions, _) = read_due(&mut world, &mut again, |_| None);
    assert!(revisions[0].settled && revisions[0].number == 2);
}

#[test]
fn a_finished_follow_goes_on_with_a_later_end() {
    let mut world = World::with_events(2 * HOUR, 60);
    let until = |end, state| options("30m").end(instant(end)).state(state);
    let mut first = follow(&world, until(3_000, None));
    let (revisions, wait) = read_due(&mut world, &mut first, |_| None);
    assert_eq!((windows_of(&revisions).len(), wait), (2, None));
    let state = first.state();
    let mut same = follow(&world, until(3_000, Some(state.clone())));
    assert_eq!(read_due(&mut world, &mut same, |_| None), (vec![], None));
    let mut longer = follow(&world, until(2 * HOUR, Some(state)));
    let (revisions, wait) = read_due(&mut world, &mut longer, |_| None);
    let rest = [(3_000, 3_600), (3_600, 5_400), (5_400, 7_200)];
    let rest = rest.map(|(start, end)| window(start, end));
    assert_eq!((windows_of(&revisions), wait), (rest.to_vec(), None));
}

#[test]
fn an_empty_state_is_refused_as_empty() {
    let world = World::with_events(HOUR, 30);
    for state in ["", "\n"] {
        let options = options("15m").state(state.to_owned());
        let error = world.client.follow(&options).expect_err("a refusal");
        let text = error.to_string();
        assert!(text.contains("state: this is empty; is it unset"), "{text}");
    }
}

#[test]
fn a_state_of_another_query_or_with_a_flipped_bit_is_refused() {
    let mut world = World::with_events(HOUR, 30);
    world.now = at(HOUR + 900);
    let mut first = follow(&world, options("15m"));
    read_due(&mut world, &mut first, |window| {
        (window == self::window(900, 1_800)).then_some(Trouble::Status(500))
    });
    let state = first.state();
    assert!(state.contains("\"unread\":[\"2026-01-01T00:15:00Z\""));
    type Change = fn(&mut FollowOptions);
    let refused = |state: String, change: Change| {
        let mut options = options("15m").state(state);
        change(&mut options);
        let error = world.client.follow(&options).expect_err("a refusal");
        assert_eq!(error.code(), Code::InvalidCheckpoint);
        assert_eq!(error.argument_name(), Some("state"));
        error.path().expect("a place").to_owned()
    };
    let changes: [(Change, &str); 4] = [
        (|options| options.window = step("5m"), "$.query.window"),
        (|options| options.dimensions.reverse(), "$.query.dimensions"),
        (|options| options.group_by = Some(vec![]), "$.query.group_by"),
        (
            |options| {
                options.metric = Metric::EventIngestion;
                options.dimensions = vec![Dimension::Integration];
            },
            "$.query.metric",
        ),
    ];
    for (change, path) in changes {
        assert_eq!(refused(state.clone(), change), path);
    }
    for end in (0..state.len()).step_by(11) {
        refused(state[..end].to_owned(), |_| ());
    }
    for at in 0..state.len() {
        for bit in 0..7 {
            let mut bytes = state.clone().into_bytes();
            bytes[at] ^= 1 << bit;
            if let Ok(flipped) = String::from_utf8(bytes) {
                refused(flipped, |_| ());
            }
        }
    }
    let mut again = follow(&world, options("15m").state(state));
    let (revisions, _) = read_due(&mut world, &mut again, |_| None);
    // The others were read just now.
    assert_eq!(windows_of(&revisions), [window(900, 1_800)]);
}

/// A document that lacks a field is refused even if its checksum is right.
#[test]
fn a_state_without_one_of_its_fields_is_refused() {
    let mut world = World::with_events(HOUR, 30);
    world.now = at(HOUR + 900);
    let mut first = follow(&world, options("15m"));
    read_due(&mut world, &mut first, |_| None);
    let state = first.state();
    let whole: serde_json::Value = serde_json::from_str(&state).expect("JSON");
    let query = &whole["query"].as_object().expect("an object");
    let fields = whole.as_object().expect("an object").keys();
    // Without a format, it is read like one of the newest.
    let fields = fields.filter(|name| *name != "format");
    for name in fields.chain(query.keys()) {
        let at = state.find(&format!("\"{name}\":")).expect("a field");
        let value = &state[at + name.len() + 3..];
        let mut values = serde_json::Deserializer::from_str(value).into_iter();
        let _: serde_json::Value = values.next().expect("a value").expect("JSON");
        let after = value[values.byte_offset()..].trim_start_matches(',');
        let torn = format!("{}{after}", &state[..at]).replace(",}", "}");
        let options = options("15m").state(sealed(&torn));
        let error = world.client.follow(&options).expect_err(name);
        assert_eq!(error.code(), Code::InvalidCheckpoint, "{name}");
        assert!(error.offset().is_none_or(|offset| offset < 1_000), "{error}");
    }
}

/// Updates the checksum of a state that was changed.
fn sealed(state: &str) -> String {
    const DIGEST: &str = "\"digest\":\"";
    let Some(at) = state.find(DIGEST).map(|at| at + DIGEST.len()) else {
        return state.to_owned();
    };
    let (start, end) = (&state[..at - 1], &state[at + 9..]);
    let crc = crc::Crc::<u32, crc::Table<1>>::new(&crc::CRC_32_ISO_HDLC);
    let digest = crc.checksum(format!("{start}{end}").as_bytes());
    format!("{start}\"{digest:08x}\"{end}")
}

/// A state in the format that does not count revisions. Its first window was read twice, and its
/// second window was never read.
const STATE_1: &str = r#"{"format":"tallyfold-follow/1","digest":"a452341a","query":{"cluster":"897eafc5a11cc601","metric":"event_delivery","dimensions":["integration","reason"],"group_by":["integration","reason"],"window":"15m"},"next":"2026-01-01T00:30:00Z","unread":["2026-01-01T00:15:00Z","2026-01-01T00:30:00Z"],"same_ms":["900000"],"read_ms":["1767227400000"],"table":{"format":"tallyfold-table/1","metric":"event_delivery","dimensions":["integration","reason"],"filter":[],"totals":{"success":"0","errors":"0","filtered":"3"},"windows":[{"start":"2026-01-01T00:00:00Z","end":"2026-01-01T00:15:00Z","provisional":true,"reported":{"success":"0","errors":"0","filtered":"3"},"notes":{"repeated_combinations":0,"null_dimensions":0},"rows":[{"values":["integration 4","reason 0"],"success":"0","errors":"0","filtered":"3"}]}]}}"#;

#[test]
fn a_state_without_numbers_goes_on_at_1() {
    let mut world = World::empty();
    world.now = at(3 * 900);
    world.record(3, &mut Random(1));
    world.record(4, &mut Random(1));
    let options = |state: &str| options("15m").end(instant(1_800)).state(state.to_owned());
    let mut followed = follow(&world, options(STATE_1));
    let (revisions, _) = read_due(&mut world, &mut followed, |_| None);
    let numbers = |revisions: &[Revision]| -> Vec<(Window, u32)> {
        let each = revisions.iter();
        each.map(|of| (of.window, of.number)).collect()
    };
    let [first, second] = [window(0, 900), window(900, 1_800)];
    assert_eq!(numbers(&revisions), [(first, 1), (second, 0)]);
    assert_eq!(revisions[0].changes.total_delta().filtered, 3);
    // From then on, they are counted.
    let mut again = follow(&world, options(&followed.state()));
    pass(&mut world, 900_000);
    let (revisions, _) = read_due(&mut world, &mut again, |_| None);
    assert_eq!(numbers(&revisions), [(first, 2), (second, 1)]);
    let refused = |state: &str| {
        let error = world.client.follow(&options(state)).expect_err("a refusal");
        assert_eq!(error.code(), Code::InvalidCheckpoint);
        error.path().expect("a place").to_owned()
    };
    assert_eq!(refused(&STATE_1.replace("900000", "900001")), "$.digest");
    let other = STATE_1.replace("follow/1", "follow/3");
    assert_eq!(refused(&other), "$.format");
    let counted = followed.state();
    for wrong in ["[\"2\"]", "[\"2\",\"\"]", "[\"2\",\"1.5\"]", "null"] {
        let wrong = counted.replace("[\"2\",\"1\"]", wrong);
        assert_ne!(wrong, counted);
        let path = refused(&sealed(&wrong));
        assert!(path == "$.revisions" || path == "$.table", "{path}");
    }
}

/// A process that ends after each revision comes to the next windows too.
#[test]
fn a_follow_that_is_stopped_after_every_revision_goes_on() {
    let mut world = World::with_events(HOUR, 30);
    world.now = at(HOUR + 60);
    let mut state = None;
    let mut windows = Vec::new();
    for _ in 0..4 {
        let mut followed = follow(&world, options("15m").state(state));
        let FollowStep::Drive(mut next) = followed.next(world.now) else {
            panic!("a window is due");
        };
        world.drive(&mut next.call, next.window, None);
        let revision = followed.settle(next.task, &mut next.call, world.now);
        windows.extend(revision.expect("no error").map(|revision| revision.window));
        state = Some(followed.state());
        world.now.monotonic_ms = 5;
    }
    let quarters = (0..4).map(|quarter| window(quarter * 900, quarter * 900 + 900));
    assert_eq!(windows, quarters.collect::<Vec<_>>());
}

/// Responds to a call like a service whose clock differs from the wall clock, and sends `Date` if `service_ms` is a number.
pub(crate) fn answer_at(
    world: &mut World,
    call: &mut tallyfold::Call,
    service_ms: impl Into<Option<i64>>,
) {
    let date = service_ms.into().map(http_date);
    loop {
        let request = match call.step(world.now) {
            Ok(Step::Send(request)) => request,
            _ => return,
        };
        let target = request.url().strip_prefix(ADDRESS).expect("an address");
        let headers: Vec<(&str, &str)> = request.headers().collect();
        let body = request.body().unwrap_or_default();
        let response = world.sandbox.handle(request.method(), target, &headers, body, world.now);
        let date = date.as_deref().map(|date| ("date", date));
        let headers: Vec<(&str, &str)> =
            [("content-type", "application/json")].into_iter().chain(date).collect();
        assert!(call.head(response.status, &headers).expect("a good head"));
        call.chunk(&response.body).expect("a good body");
        call.end().expect("a whole body");
    }
}

fn http_date(unix_ms: i64) -> String {
    // Every test is in January 2026, which began on a Thursday.
    let s = (unix_ms - NEW_YEAR_MS) / 1_000;
    let (day, hour, minute, second) = (s / 86_400 + 1, s / 3_600 % 24, s / 60 % 60, s % 60);
    format!("Thu, {day:02} Jan 2026 {hour:02}:{minute:02}:{second:02} GMT")
}

/// Follows eight hours of a service whose clock is right. At each time, the caller's wall clock is
/// ahead by `ahead` milliseconds.
fn follow_ahead(ahead: impl Fn(u64) -> i64, is_stopped: bool) -> (RunningSum, u32) {
    let mut world = World::empty();
    let mut true_ms = 0;
    let mut random = Random(480);
    let mut events: Vec<(u64, u64)> = (0..480)
        .map(|minute| (minute * 60_000 + random.below(50 * 60_000), minute * 60_000))
        .collect();
    events.sort_unstable_by(|one, other| other.cmp(one));
    let options = |state| options("5m").end(instant(8 * HOUR)).state(state);
    let mut followed = follow(&world, options(None));
    let (mut sum, mut requests) = (RunningSum::default(), 0);
    loop {
        while events.last().is_some_and(|(seen_ms, _)| *seen_ms <= true_ms) {
            let (_, ms) = events.pop().expect("it was there");
            world.record_one(ms);
        }
        world.now =
            Now { monotonic_ms: true_ms, unix_ms: NEW_YEAR_MS + true_ms as i64 + ahead(true_ms) };
        match followed.next(world.now) {
            FollowStep::Drive(Drive { task, mut call, .. }) => {
                answer_at(&mut world, &mut call, NEW_YEAR_MS + true_ms as i64);
                requests += 1;
                let settled = followed.settle(task, &mut call, world.now);
                if let Some(revision) = settled.expect("a good response") {
                    let end_ms = (revision.window.end().unix_ms() - NEW_YEAR_MS) as u64;
                    // A `Date` has whole seconds.
                    assert!(end_ms <= true_ms + 1_000, "{end_ms} at {true_ms}");
                    assert!(!revision.settled || end_ms + 3_600_000 <= true_ms);
                    sum.add(&revision);
                    if is_stopped && requests % 50 == 0 {
                        followed = follow(&world, options(Some(followed.state())));
                    }
                }
            }
            FollowStep::Wait { ms } => true_ms += u64::from(ms),
            FollowStep::Failed(error) => panic!("{error}"),
            FollowStep::Done => return (sum, requests),
        }
    }
}

#[test]
fn a_response_without_a_date_settles_by_the_date_of_an_earlier_one() {
    const AHEAD_MS: i64 = 2 * 3_600_000;
    let mut world = World::with_events(4 * HOUR, 100);
    let mut follow = follow(&world, options("15m"));
    let mut settled = Vec::new();
    for minute in (16..180_u64).step_by(5) {
        world.now = at(minute * 60);
        world.now.unix_ms += AHEAD_MS;
        while let FollowStep::Drive(Drive { task, mut call, .. }) = follow.next(world.now) {
            let service_ms = NEW_YEAR_MS + minute as i64 * 60_000;
            answer_at(&mut world, &mut call, (minute == 16).then_some(service_ms));
            let revision = follow.settle(task, &mut call, world.now).expect("a response");
            if let Some(revision) = revision.filter(|revision| revision.settled) {
                let end_ms = revision.window.end().unix_ms();
                assert!(end_ms + 3_600_000 <= service_ms, "{:?} at {minute}", revision.window);
                settled.push(revision.window);
            }
        }
    }
    assert!(settled.len() >= 6, "{settled:?}");
}

/// A proxy's old `Date`, and the last `Date` before the computer slept, hold nothing back.
#[test]
fn one_old_date_does_not_stop_settling() {
    for is_refused in [true, false] {
        let mut world = World::with_events(6 * HOUR, 100);
        let mut follow = follow(&world, options("15m"));
        let mut settled = 0;
        for minute in (16..360_u64).step_by(5) {
            pass(&mut world, 300_000);
            world.now.unix_ms = at(minute * 60).unix_ms;
            // The monotonic clock stops while the computer sleeps.
            if minute > 60 && minute < 200 {
                world.now.monotonic_ms -= 300_000;
                continue;
            }
            while let FollowStep::Drive(Drive { task, mut call, .. }) = follow.next(world.now) {
                let date = (minute == 16).then_some(world.now.unix_ms);
                match date {
                    Some(_) if is_refused => {
                        assert!(matches!(call.step(world.now), Ok(Step::Send(_))));
                        let date = [("date", "Thu, 01 Jan 1970 00:00:00 GMT")];
                        call.head(403, &date).and_then(|_| call.end()).ok();
                    }
                    date => answer_at(&mut world, &mut call, date),
                }
                let revision = follow.settle(task, &mut call, world.now).ok().flatten();
                settled += u32::from(revision.is_some_and(|revision| revision.settled));
            }
        }
        assert!(settled >= 18, "{is_refused}: {settled}");
    }
}

#[test]
fn a_wall_clock_that_is_ahead_settles_nothing_too_early() {
    const AHEAD: i64 = 3 * 3_600_000;
    for (name, ahead) in [
        ("right", (|_| 0) as fn(u64) -> i64),
        ("by half a minute", |_| 30_000),
        ("by two hours", |_| 7_200_000),
        ("always", |_| AHEAD),
        ("by a day", |_| 24 * 3_600_000),
        ("from a moment on", |ms| if ms > 7_000_000 { AHEAD } else { 0 }),
        ("for a while", |ms| if (7_000_000..9_000_000).contains(&ms) { AHEAD } else { 0 }),
        ("more and more", |ms| ms as i64 / 2),
    ] {
        let (stopped, _) = follow_ahead(ahead, true);
        let (sum, requests) = follow_ahead(ahead, false);
        assert_eq!(stopped.sums, sum.sums, "{name}");
        let success: i128 = sum.sums.values().map(|[success, ..]| success).sum();
        assert_eq!(success, 480, "{name}");
        assert_eq!(sum.settled.len(), 96, "{name}");
        assert!(sum.settled.values().all(|settled| *settled), "{name}");
        // 13 readings of each window, half as many again by a clock that is half as fast again, and one for each that was
        // opened early.
        assert!(requests <= 96 * 21, "{name}: {requests} requests");
    }
}

/// Its driver was interrupted between `next` and `settle`, and has nothing to settle.
#[test]
fn lost_calls_are_given_back() {
    let mut world = World::with_events(HOUR, 40);
    world.now = at(HOUR);
    let mut followed = follow(&world, options("15m").end(instant(HOUR)).settle_ms(0));
    let mut windows = Vec::new();
    for _ in 0..4 {
        let lost = followed.next(world.now);
        let FollowStep::Drive(Drive { window, .. }) = lost else {
            panic!("a window is due");
        };
        drop(lost);
        followed.give_back();
        let FollowStep::Drive(mut again) = followed.next(world.now) else {
            panic!("the window is due again");
        };
        assert_eq!(again.window, window);
        world.drive(&mut again.call, again.window, None);
        let revision = followed.settle(again.task, &mut again.call, world.now);
        windows.extend(revision.expect("no error").map(|revision| revision.window));
    }
    let quarters = (0..4).map(|quarter| window(quarter * 900, quarter * 900 + 900));
    assert_eq!(windows, quarters.collect::<Vec<_>>());
    assert!(matches!(followed.next(world.now), FollowStep::Done));
}

/// The wall clock is ahead, and a window is read within the last second of its settle time. It settles with the next
/// reading, once that second is surely over.
#[test]
fn the_last_second_of_the_settle_time_must_be_over() {
    for (early_ms, settle_ms) in [(1, 0), (999, 0), (1_000, 0), (1, 3_600_000), (500, 3_600_000)] {
        let mut world = World::with_events(HOUR, 20);
        let options = options("5m").end(instant(300)).reread_ms(120_000).settle_ms(settle_ms);
        let mut followed = follow(&world, options);
        let mut true_ms = 300_000 + settle_ms - early_ms;
        let mut read_ms = Vec::new();
        loop {
            world.now =
                Now { monotonic_ms: true_ms, unix_ms: NEW_YEAR_MS + true_ms as i64 + 5_000 };
            match followed.next(world.now) {
                FollowStep::Drive(Drive { task, mut call, .. }) => {
                    read_ms.push(true_ms);
                    answer_at(&mut world, &mut call, NEW_YEAR_MS + true_ms as i64);
                    let revision = followed.settle(task, &mut call, world.now);
                    let revision = revision.expect("a good response").expect("it has ended");
                    assert_eq!(revision.settled, read_ms.len() == 2, "{early_ms} {read_ms:?}");
                }
                FollowStep::Wait { ms } => true_ms += u64::from(ms),
                FollowStep::Failed(error) => panic!("{error}"),
                FollowStep::Done => break,
            }
        }
        assert_eq!(read_ms[1], read_ms[0] + 1_000);
    }
}

/// Even if the `Date` stands still in that second, only one more request comes early.
#[test]
fn a_date_that_stands_still_is_not_polled() {
    let mut world = World::with_events(HOUR, 20);
    let options = options("5m").end(instant(300)).reread_ms(120_000).settle_ms(0);
    let mut followed = follow(&world, options);
    let (mut ms, mut waits) = (305_000, Vec::new());
    while waits.len() < 4 {
        world.now = Now { monotonic_ms: ms, unix_ms: NEW_YEAR_MS + ms as i64 };
        match followed.next(world.now) {
            FollowStep::Drive(Drive { task, mut call, .. }) => {
                answer_at(&mut world, &mut call, NEW_YEAR_MS + 299_000);
                let revision = followed.settle(task, &mut call, world.now);
                assert!(!revision.expect("a good response").expect("counts").settled);
            }
            FollowStep::Wait { ms: wait_ms } => {
                ms += u64::from(wait_ms);
                waits.push(wait_ms);
            }
            other => panic!("not {other:?}"),
        }
    }
    assert_eq!(waits, [1_000, 120_000, 120_000, 120_000]);
}

/// One response has an old `Date`, for example from a cache or another server. The next response corrects the clock.
#[test]
fn an_old_date_delays_the_next_request_by_no_more_than_an_interval() {
    for (old_ms, reread_ms) in
        [(120_000, 30_000), (300_000, 60_000), (7_200_000, 300_000), (3_600_000, 60_000)]
    {
        let mut world = World::with_events(DAY, 200);
        let options = options("5m").end(instant(4 * HOUR)).reread_ms(reread_ms);
        let mut followed = follow(&world, options);
        let (mut true_ms, mut last_ms, mut was_old, mut settled) = (HOUR * 1_000, None, false, 0);
        loop {
            world.now = Now { monotonic_ms: true_ms, unix_ms: NEW_YEAR_MS + true_ms as i64 };
            match followed.next(world.now) {
                FollowStep::Drive(Drive { task, mut call, window }) => {
                    let waited_ms = true_ms - last_ms.replace(true_ms).unwrap_or(true_ms);
                    let most_ms = reread_ms.min(300_000);
                    assert!(waited_ms <= most_ms, "{old_ms}: {waited_ms} ms without a request");
                    let is_old = window.start() == instant(2 * HOUR) && !was_old;
                    was_old |= is_old;
                    let old_ms = if is_old { old_ms } else { 0 };
                    let service_ms = world.now.unix_ms - old_ms;
                    answer_at(&mut world, &mut call, service_ms);
                    let revision = followed.settle(task, &mut call, world.now).expect("counts");
                    settled += usize::from(revision.is_some_and(|revision| revision.settled));
                }
                FollowStep::Wait { ms } => true_ms += u64::from(ms),
                FollowStep::Failed(error) => panic!("{error}"),
                FollowStep::Done => break,
            }
        }
        assert_eq!((was_old, settled), (true, 48));
    }
}

/// While the computer sleeps, the monotonic clock may stand still, and the service's clock goes on.
#[test]
fn a_process_that_slept_catches_up_by_the_services_clock() {
    let mut world = World::with_events(DAY, 200);
    let mut follow = follow(&world, options("15m"));
    let mut read = |world: &mut World, seconds: u64| {
        world.now.unix_ms = NEW_YEAR_MS + seconds as i64 * 1_000;
        let mut settled = 0;
        while let FollowStep::Drive(Drive { task, mut call, .. }) = follow.next(world.now) {
            let service_ms = world.now.unix_ms;
            answer_at(world, &mut call, service_ms);
            let revision = follow.settle(task, &mut call, world.now).expect("counts");
            settled += usize::from(revision.is_some_and(|revision| revision.settled));
        }
        settled
    };
    assert_eq!(read(&mut world, 900), 0);
    assert_eq!(read(&mut world, 900 + 6 * HOUR), 21);
}

/// A state that was made with a clock that was ahead.
#[test]
fn a_state_of_the_future_is_an_error_that_says_so() {
    let mut world = World::with_events(DAY, 200);
    world.now = at(6 * HOUR);
    let mut ahead = follow(&world, options("15m"));
    read_due(&mut world, &mut ahead, |_| None);
    let state = ahead.state();
    let again =
        |state: &str, start: u64| options("15m").state(state.to_owned()).start(instant(start));
    let mut same = follow(&world, again(&state, 0));
    let first = |follow: &mut Follow, seconds| match follow.next(at(seconds)) {
        FollowStep::Failed(error) => Some(error),
        _ => None,
    };
    let error = first(&mut same, 3 * HOUR).expect("an error");
    assert_eq!(error.code(), Code::InvalidCheckpoint);
    assert_eq!(error.argument_name(), Some("state"));
    let message = error.message().to_owned();
    assert!(message.contains("from the future"), "{message}");
    assert!(message.contains("2026-01-01T06:00:00Z") && message.contains("2026-01-01T03:00:00Z"));
    // Clocks may differ a little, and once the time has come there is nothing to refuse.
    assert!(first(&mut same, 6 * HOUR - 301).is_some());
    assert!(first(&mut same, 6 * HOUR - 300).is_none());
    assert!(first(&mut same, 3 * HOUR).is_none());
    // A follow that has not begun may begin in the future.
    let waits = follow(&world, options("15m").start(instant(9 * DAY))).state();
    let mut later = follow(&world, again(&waits, 9 * DAY));
    assert!(first(&mut later, 0).is_none());
}
