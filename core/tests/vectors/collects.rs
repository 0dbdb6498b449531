//! The vectors of long ranges.

use serde_json::Value;
use tallyfold::arguments;
use tallyfold::keeper::segment_name;
use tallyfold::{
    Call, Collect, CollectOptions, CollectStep, Drive, Frame, HostFailure, Machine, MachineOptions,
    Now, Patience, Result, Secret, Step, Window,
};

use super::{Given, check, check_error, list, load_table, number, run, text};

/// This is long after all windows of the vectors.
const NOW: Now = Now { monotonic_ms: 0, unix_ms: 2_000_000_000_000 };

#[test]
fn collects() {
    run("collects", |case| {
        let mut asked = Vec::new();
        let mut collect = match begin(case) {
            Ok(collect) => collect,
            Err(error) => return check_error(case, &error),
        };
        while let CollectStep::Drive(Drive { task, mut call, window }) = collect.next(NOW) {
            asked.push(edges(window));
            // Its error comes again when it is settled.
            drop(drive(&mut call, case, window));
            collect.settle(task, &mut call, NOW).expect("it is under way");
        }
        assert_eq!(Value::from(asked), case["asked"]);
        check_end(case, &collect);
        if let Some(stored) = case.get("stored") {
            let segment = collect.unsaved().expect("something to store");
            assert_eq!(segment.json, text(stored));
            let document: Value = serde_json::from_str(text(stored)).expect("JSON");
            let number = document["segment"].as_u64().expect("a number");
            assert_eq!(segment.name, segment_name(number));
            assert_eq!(collect.unsaved(), None);
        }
    });
}

fn begin(case: &Value) -> Result<Collect> {
    let client = Machine::new(
        MachineOptions::default()
            .cluster_endpoint("https://cluster.example")
            .host_tokens(true)
            .max_retries(0),
    )?;
    let options: CollectOptions = arguments::read(&Given(&case["query"]), &[])?;
    // No time passes in a vector.
    let options = options.patience_ms(Patience::Milliseconds(0));
    let mut collect =
        client.collect(options.have(case.get("have").map(load_table).transpose()?))?;
    for (name, segment) in (0..).map(segment_name).zip(list(&case["segments"])) {
        collect.load(&name, text(segment).as_bytes())?;
    }
    Ok(collect)
}

fn drive(call: &mut Call, case: &Value, window: Window) -> Result<()> {
    loop {
        match call.step(NOW)? {
            Step::ProvideToken { .. } => call.token(Secret::from("token".to_owned()), None)?,
            Step::Done => return Ok(()),
            Step::Send(_) => {
                let mut answers = list(&case["answers"]).iter();
                let answer = answers.find(|answer| answer["window"] == edges(window));
                answer_with(call, answer.expect("an answer"))?;
            }
            other => panic!("unexpected {other:?}"),
        }
    }
}

fn answer_with(call: &mut Call, answer: &Value) -> Result<()> {
    match answer.get("fail").map(text) {
        Some("network") => return call.failed(HostFailure::Network, ""),
        Some(_) => return call.failed(HostFailure::Timeout, ""),
        None => {}
    }
    let response = &answer["respond"];
    let status = u16::try_from(number(&response["status"])).expect("a status");
    let pairs = list(&response["headers"]).iter();
    let headers: Vec<_> = pairs.map(|pair| (text(&pair[0]), text(&pair[1]))).collect();
    if call.head(status, &headers)? {
        call.chunk(text(&response["body"]).as_bytes())?;
        call.end()?;
    }
    Ok(())
}

fn check_end(case: &Value, collect: &Collect) {
    let ended = match collect.finish() {
        Ok(table) => return check(case, Ok(tallyfold::Output::Table(table))),
        Err(ended) => ended,
    };
    check_error(case, &ended.error);
    let gaps: Vec<Value> = ended.gaps.into_iter().map(edges).collect();
    assert_eq!(Value::from(gaps), case["gaps"]);
    let partial = ended.partial.as_ref().map(Frame::to_json);
    let partial = partial.map(|json| serde_json::from_str(&json).expect("JSON"));
    assert_eq!(partial.unwrap_or(Value::Null), case["partial"]);
}

fn edges(window: Window) -> Value {
    Value::from(vec![window.start().to_string(), window.end().to_string()])
}
