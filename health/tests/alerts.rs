//! Alerts for each kind of receiver: when they are sent, when they are sent again, and when they end.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tallyfold::sending::{PushStep, TargetHeaders};
use tallyfold::{Dimension, HostFailure, Metric, Now, Timestamp, Window};
use tallyfold_health::{
    AlertLabels, Amount, Finding, Found, Incident, IncidentChange, IncidentEvent, IncidentPart,
    Measure, Notifications, Notified, NotifyOptions, Query, Receiver, ReceiverKind,
    ReceiverOptions, ReceiverOutcome, Severity, Status, kinds::RuleKind,
};

const NOW: &str = "2026-01-01T02:00:00Z";

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn finding(id: &str, status: Status) -> Finding {
    let window = Window::parse("2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z").unwrap();
    Finding {
        id: id.to_owned(),
        rule: format!("rule {id}"),
        kind: RuleKind::Threshold,
        severity: Severity::Critical,
        status,
        group: vec![(Dimension::Integration, "a <b> & c".to_owned())],
        window,
        since: window.start(),
        fired: Some(window.end()),
        resolved: (status == Status::Resolved).then(|| at("2026-01-01T01:00:00Z")),
        seen: window.end(),
        measure: Measure::Errors,
        observed: Amount { part: 7, whole: None },
        total: None,
        expected: 1.5,
        low: 0,
        high: Some(3),
        ln_p: Some(-5.5),
        causes: Vec::new(),
        within: Vec::new(),
        unexplained: 0,
        compared: Vec::new(),
        silenced: false,
        provisional: false,
        labels: BTreeMap::from([("team".to_owned(), "data".to_owned())]),
        note: Some("page the data team".to_owned()),
        runbook: Some("https://wiki.example/failing".to_owned()),
        incident: Some(id.to_owned()),
        sentence: format!("{id} is <wrong> & bad"),
        query: Query {
            metric: Metric::EventDelivery,
            start: window.start(),
            end: window.end(),
            dimensions: vec![Dimension::Integration],
            r#where: vec![(Dimension::Integration, vec!["a b".to_owned()])],
        },
    }
}

/// Makes the incident of some findings. The first finding is the headline.
fn incident(findings: &[&Finding]) -> Incident {
    let first = findings[0];
    let part = |finding: &&Finding| IncidentPart {
        id: finding.id.clone(),
        rule: finding.rule.clone(),
        severity: finding.severity,
        status: finding.status,
        group: finding.group.clone(),
        cause: Vec::new(),
        measure: finding.measure,
        events: 5,
        since: finding.since,
        until: finding.window.end(),
        silenced: finding.silenced,
        provisional: finding.provisional,
        sentence: finding.sentence.clone(),
    };
    let severity = findings.iter().map(|finding| finding.severity).max();
    Incident {
        id: first.incident.clone().unwrap(),
        severity: severity.unwrap(),
        status: first.status,
        since: first.since,
        fired: first.fired.unwrap(),
        until: first.resolved.unwrap_or(first.window.end()),
        headline: first.id.clone(),
        sentence: first.sentence.clone(),
        silenced: first.silenced,
        provisional: first.provisional,
        missed: false,
        hold: None,
        parts: findings.iter().map(part).collect(),
        history: vec![IncidentEvent {
            at: first.window.end(),
            change: IncidentChange::Began,
            severity: first.severity,
            finding: first.id.clone(),
        }],
    }
}

fn firing(id: &str) -> Finding {
    finding(id, Status::Firing)
}

fn receiver(kind: ReceiverKind, more: impl FnOnce(&mut ReceiverOptions)) -> Receiver {
    let mut options = ReceiverOptions::with_defaults("x".to_owned());
    options.url = Some("https://hooks.example/T0/secret-path".to_owned());
    more(&mut options);
    Receiver::new(kind, &options).unwrap()
}

fn genie_key() -> TargetHeaders {
    let flat = ["authorization", "GenieKey secret-of-a-team"];
    TargetHeaders::new(flat.map(str::to_owned).to_vec()).unwrap()
}

fn webhook() -> Receiver {
    receiver(ReceiverKind::Webhook, |_| {})
}

/// A receiver's answer: a status and a body; `None` for a failed connection.
type Answer = Option<(u16, &'static str)>;

/// The messages of a run, and its results.
struct Run {
    sent: Vec<(String, Value)>,
    notified: Notified,
    outcomes: Vec<ReceiverOutcome>,
    waited_ms: u64,
}

impl Run {
    fn error(&self) -> &str {
        let receipt = &self.outcomes[0].receipt;
        receipt.error.as_deref().unwrap_or_default()
    }
}

/// Notifies a receiver of findings. Each finding is an incident.
fn run(
    findings: &[Finding],
    receiver: Receiver,
    before: &Notified,
    answers: impl IntoIterator<Item = Answer>,
) -> Run {
    let incidents: Vec<Incident> = findings.iter().map(|one| incident(&[one])).collect();
    run_of(findings, &incidents, receiver, before, answers)
}

/// Notifies a receiver of these incidents.
fn run_of(
    findings: &[Finding],
    incidents: &[Incident],
    receiver: Receiver,
    before: &Notified,
    answers: impl IntoIterator<Item = Answer>,
) -> Run {
    let found = Found { incidents, findings, is_cut: false };
    run_with(found, receiver, before, answers)
}

/// Notifies a receiver of incidents and findings. The receiver gives these answers, and then accepts all messages.
fn run_with(
    found: Found<'_>,
    receiver: Receiver,
    before: &Notified,
    answers: impl IntoIterator<Item = Answer>,
) -> Run {
    let options = NotifyOptions::default()
        .cluster("eu")
        .labels(AlertLabels(vec![("region".to_owned(), "west".to_owned())]));
    // Each run reads a stored state.
    let before = Notified::from_json(before.to_json().as_bytes()).unwrap();
    let mut notifications =
        Notifications::new(found, [receiver], before, &options, at(NOW)).unwrap();
    let mut answers = answers.into_iter();
    let (mut sent, mut waited_ms) = (Vec::new(), 0);
    while let Some((place, push)) = notifications.delivery() {
        assert_eq!(place, 0);
        let now = Now { monotonic_ms: waited_ms, unix_ms: 0 };
        match push.step(now) {
            Ok(PushStep::Send(message)) => {
                let body = serde_json::from_slice(message.body).unwrap();
                sent.push((message.url.to_owned(), body));
                match answers.next().unwrap_or(Some((200, "ok"))) {
                    None => push.failed(HostFailure::Network, "ECONNREFUSED").unwrap(),
                    Some((status, body)) => {
                        if push.head(status, &[]).unwrap() {
                            push.chunk(body.as_bytes()).unwrap();
                            push.end().unwrap();
                        }
                    }
                }
            }
            Ok(PushStep::Wait { ms }) => waited_ms += u64::from(ms),
            Ok(PushStep::Finished { .. } | PushStep::Done) | Err(_) => {}
        }
    }
    let (notified, outcomes) = notifications.finish();
    Run { sent, notified, outcomes, waited_ms }
}

/// The command that shows the counts of the finding `a`.
const COMMAND: &str = "tallyfold delivery --from 2026-01-01T00:00:00Z --to 2026-01-01T00:15:00Z --by integration --where 'integration=a b' --cluster eu";

/// The message about the finding `a`: the cluster, the rule, the sentence, the incident, the note and the runbook.
const TEXT: &str = "eu: rule a: a is <wrong> & bad [incident a] — page the data team — https://wiki.example/failing";

#[test]
fn the_command_groups_by_the_dimensions_that_the_finding_names() {
    let mut finding = firing("a");
    finding.query.dimensions = Dimension::ALL.to_vec();
    let by = |finding: &Finding| {
        let begun = run(std::slice::from_ref(finding), webhook(), &Notified::default(), []);
        let text = begun.sent[0].1["text"].as_str().unwrap().to_owned();
        let (_, after) = text.split_once(" --by ").unwrap();
        after.split(' ').next().unwrap().to_owned()
    };
    assert_eq!(by(&finding), "integration");
    finding.measure = Measure::Filtered;
    assert_eq!(by(&finding), "integration,reason");
    finding.within = vec![(Dimension::WriteKey, "web".to_owned())];
    assert_eq!(by(&finding), "write_key,integration,reason");
    finding.measure = Measure::Errors;
    finding.query.r#where.clear();
    finding.within.clear();
    assert_eq!(by(&finding), "event_name,write_key,integration,reason");
}

#[test]
fn an_alert_is_sent_once_and_its_end_once() {
    let begun = run(&[firing("a")], webhook(), &Notified::default(), []);
    assert_eq!(begun.sent.len(), 1);
    let text = format!("critical: {TEXT}\n{COMMAND}");
    assert_eq!(begun.sent[0].1, json!({ "text": text }));
    let continued = run(&[firing("a")], webhook(), &begun.notified, []);
    assert!(continued.sent.is_empty());
    let over = [finding("a", Status::Resolved)];
    let over = run(&over, webhook(), &continued.notified, []);
    assert_eq!(over.sent.len(), 1);
    assert_eq!(over.notified, Notified::default());
    assert!(run(&[], webhook(), &over.notified, []).sent.is_empty());
}

#[test]
fn a_failed_message_is_retried_for_seconds_and_then_by_the_next_run() {
    let again = run(
        &[firing("a")],
        webhook(),
        &Notified::default(),
        [Some((500, "")), None, Some((200, ""))],
    );
    assert_eq!(again.sent.len(), 3);
    assert_eq!(again.outcomes[0].receipt.retries, 2);
    assert_eq!(again.error(), "");
    let down = run(&[firing("a"), firing("b")], webhook(), &Notified::default(), vec![None; 99]);
    assert!((3..=5).contains(&down.sent.len()), "{}", down.sent.len());
    assert!(down.waited_ms <= 5_000);
    assert_eq!(down.outcomes[0].receipt.code.as_deref(), Some("network_failed"));
    // The error contains no part of the path, which is a secret.
    assert!(down.error().contains("https://hooks.example"));
    assert!(!down.error().contains("T0"), "{}", down.error());
    assert_eq!(run(&[firing("a")], webhook(), &down.notified, []).sent.len(), 1);
}

#[test]
fn the_end_of_an_alert_is_sent_if_the_answer_to_its_beginning_was_lost() {
    let firing = [firing("a")];
    let over = [finding("a", Status::Resolved)];
    // After a lost answer, a refusal of the second attempt does not show that the receiver doesn't know the alert.
    for (answers, ends) in [
        (vec![None; 99], 1),
        (vec![Some((500, "")); 99], 1),
        (vec![None, Some((403, ""))], 1),
        (vec![Some((403, ""))], 0),
    ] {
        let begun = run(&firing, webhook(), &Notified::default(), answers);
        assert_eq!(run(&over, webhook(), &begun.notified, []).sent.len(), ends);
        // The next run sends the beginning again, and then knows that it has arrived.
        let again = run(&firing, webhook(), &begun.notified, []);
        assert_eq!(again.sent.len(), 1);
        assert!(run(&firing, webhook(), &again.notified, []).sent.is_empty());
    }
    // An Alertmanager gets the end also after a refusal.
    let alertmanager = || receiver(ReceiverKind::Alertmanager, |_| {});
    let refused = run(&firing, alertmanager(), &Notified::default(), [Some((403, ""))]);
    assert_eq!(run(&over, alertmanager(), &refused.notified, []).sent.len(), 1);
}

/// The check that resolves an incident is the only one that reports it. Its receiver may be down then, or not be named.
#[test]
fn a_late_message_about_an_end_is_the_message_of_that_check() {
    let mut ended = finding("a", Status::Resolved);
    ended.sentence = "a was bad; over".to_owned();
    let ended = [ended];
    for kind in [ReceiverKind::Webhook, ReceiverKind::Alertmanager] {
        let own = || receiver(kind, |_| {});
        let begun = run(&[firing("a")], own(), &Notified::default(), []);
        let at_once = run(&ended, own(), &begun.notified, []).sent;
        assert!(at_once[0].1.to_string().contains("a was bad; over"));
        let down = run(&ended, own(), &begun.notified, vec![Some((500, "")); 99]);
        let other = receiver(ReceiverKind::Slack, |_| {});
        let unnamed = run(&ended, other, &begun.notified, []);
        for missed in [down, unnamed] {
            assert_eq!(run(&[], own(), &missed.notified, []).sent, at_once);
            // The incident may come back before the message is sent.
            let again = run(&[firing("a")], own(), &missed.notified, []);
            let lost = run(&[], own(), &again.notified, []).sent;
            assert!(!lost[0].1.to_string().contains("01:00:00Z"), "{lost:?}");
        }
    }
}

/// A check that runs once an hour finds an incident of half an hour only after it is over.
#[test]
fn chats_and_webhooks_are_notified_of_an_incident_between_two_checks_once() {
    let missed = |change: fn(&mut Finding)| {
        let mut over = finding("a", Status::Resolved);
        change(&mut over);
        let mut incident = incident(&[&over]);
        incident.missed = true;
        ([over], [incident])
    };
    let (over, told) = missed(|_| {});
    let message = run_of(&over, &told, webhook(), &Notified::default(), []);
    let [(_, sent)] = &message.sent[..] else { panic!("{:?}", message.sent) };
    let text = sent["text"].as_str().unwrap();
    assert!(text.starts_with("resolved: eu: rule a: "), "{text}");
    // The same check again, for example because another receiver was down.
    let again = run_of(&over, &told, webhook(), &message.notified, []);
    assert_eq!((&again.sent[..], &again.notified), (&[][..], &message.notified));
    // If the incident comes back, it is a known one that fires.
    let back = run(&[firing("a")], webhook(), &message.notified, []);
    let text = back.sent[0].1["text"].as_str().unwrap();
    assert!(text.starts_with("critical: eu: rule a: "), "{text}");
    // A receiver that doesn't accept the message gets it in the next run.
    let down = vec![Some((500, "")); 99];
    let down = run_of(&over, &told, webhook(), &Notified::default(), down);
    let later = run(&[], webhook(), &down.notified, []);
    assert_eq!(later.sent, message.sent);
    assert_eq!(later.notified, Notified::default());
    // A receiver that refuses the message does not get it with every run.
    for status in [400, 404] {
        let refuses = [Some((status, ""))];
        let refused = run_of(&over, &told, webhook(), &Notified::default(), refuses);
        assert_eq!(run(&[], webhook(), &refused.notified, []).sent, []);
        assert_eq!(run_of(&over, &told, webhook(), &refused.notified, []).sent, []);
    }
    // A receiver that knows the alert gets one message.
    let begun = run(&[firing("a")], webhook(), &Notified::default(), []);
    let ended = run_of(&over, &told, webhook(), &begun.notified, []);
    assert_eq!(ended.sent.len(), 1);
    // An Alertmanager drops an alert that it doesn't know and that is over.
    let own = receiver(ReceiverKind::Alertmanager, |_| {});
    let none = run_of(&over, &told, own, &Notified::default(), []);
    assert_eq!(none.sent, []);
    let quiet: [fn(&mut Finding); 3] = [
        |one| one.silenced = true,
        |one| one.provisional = true,
        |one| one.resolved = Some(at("2025-12-31T01:00:00Z")),
    ];
    for change in quiet {
        let (over, told) = missed(change);
        let none = run_of(&over, &told, webhook(), &Notified::default(), []);
        assert_eq!(none.sent, []);
    }
}

#[test]
fn a_refused_message_does_not_prevent_the_others() {
    let both = [firing("a"), firing("b")];
    let refused = run(&both, webhook(), &Notified::default(), [Some((400, "too long"))]);
    assert_eq!(refused.sent.len(), 2);
    assert_eq!(refused.outcomes[0].receipt.messages, 1);
    assert_eq!(refused.outcomes[0].receipt.status, Some(400));
    assert!(refused.error().contains("too long"), "{}", refused.error());
    let next = run(&both, webhook(), &refused.notified, []);
    assert_eq!(next.sent.len(), 1);
    // If the receiver refuses the credentials, no other message is sent.
    let refused = run(&both, webhook(), &Notified::default(), [Some((403, ""))]);
    assert_eq!(refused.sent.len(), 1);
}

#[test]
fn secrets_in_answers_are_masked() {
    let header = ["authorization", "Bearer very-secret-token"];
    let receiver = |kind| {
        receiver(kind, |options| {
            let flat = header.map(str::to_owned).to_vec();
            options.headers = TargetHeaders::new(flat).unwrap();
            if kind == ReceiverKind::PagerDuty {
                options.routing_key = Some("very-secret-key".to_owned().into());
            }
        })
    };
    let body = "no very-secret-token at https://hooks.example/T0/secret-path for very-secret-key";
    let alerts = [firing("a")];
    let none = Notified::default();
    let refused = run(&alerts, receiver(ReceiverKind::PagerDuty), &none, [Some((400, body))]);
    assert!(!refused.error().contains("very-secret"), "{}", refused.error());
    let refused = run(&alerts, receiver(ReceiverKind::Slack), &none, [Some((400, body))]);
    assert!(!refused.error().contains("secret-token"));
    assert!(!refused.error().contains("secret-path"));
}

#[test]
fn each_kind_has_its_own_answers_for_success() {
    for (kind, accepted, other) in [
        (ReceiverKind::Alertmanager, (200, ""), (302, "")),
        (ReceiverKind::Webhook, (204, ""), (302, "")),
        (ReceiverKind::Slack, (200, "ok"), (200, "no_team")),
        (ReceiverKind::PagerDuty, (202, "{}"), (200, "{}")),
        (ReceiverKind::Opsgenie, (202, "{}"), (200, "{}")),
        (ReceiverKind::Teams, (202, ""), (200, "<html>")),
        (ReceiverKind::Teams, (200, "1"), (200, "Summary or Text is required.")),
    ] {
        for (answer, expected) in [(accepted, true), (other, false)] {
            let receiver = receiver(kind, |options| {
                if kind == ReceiverKind::PagerDuty {
                    options.routing_key = Some("key".to_owned().into());
                }
                if kind == ReceiverKind::Opsgenie {
                    options.headers = genie_key();
                }
            });
            let run = run(&[firing("a")], receiver, &Notified::default(), [Some(answer)]);
            assert_eq!(run.error().is_empty(), expected, "{kind} {answer:?}");
        }
    }
}

#[test]
fn slack_and_pagerduty_get_messages_in_their_documented_form() {
    let slack =
        run(&[firing("a")], receiver(ReceiverKind::Slack, |_| {}), &Notified::default(), []);
    let text = TEXT.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    assert_eq!(slack.sent[0].1, json!({ "text": format!("*critical*: {text}\n`{COMMAND}`") }));
    let over = run(&[], receiver(ReceiverKind::Slack, |_| {}), &slack.notified, []);
    assert_eq!(over.sent[0].1, json!({ "text": format!("*resolved*: {text}") }));

    let pagerduty = || {
        receiver(ReceiverKind::PagerDuty, |options| {
            options.url = None;
            options.routing_key = Some("key".to_owned().into());
        })
    };
    let accepted = || [Some((202, ""))];
    let begun = run(&[firing("a")], pagerduty(), &Notified::default(), accepted());
    let (url, event) = &begun.sent[0];
    assert_eq!(url, "https://events.pagerduty.com/v2/enqueue");
    assert_eq!(event["event_action"], "trigger");
    assert_eq!(event["routing_key"], "key");
    assert_eq!(event["payload"]["severity"], "critical");
    assert_eq!(event["payload"]["source"], "eu");
    let labels = &event["payload"]["custom_details"]["labels"];
    assert_eq!(event["payload"]["summary"], "rule a: a is <wrong> & bad");
    let details = &event["payload"]["custom_details"];
    assert_eq!(details["note"], "page the data team");
    assert_eq!(details["runbook"], "https://wiki.example/failing");
    assert_eq!(labels["alertname"], "rule a");
    assert_eq!(labels["team"], "data");
    assert_eq!(labels["region"], "west");
    assert_eq!(labels["cluster"], "eu");
    let over = run(&[], pagerduty(), &begun.notified, accepted());
    assert_eq!(over.sent[0].1["event_action"], "resolve");
    assert_eq!(over.sent[0].1["dedup_key"], event["dedup_key"]);
    assert!(over.sent[0].1.get("payload").is_none());
}

/// Returns three stages of an incident: first a warning about `a`, then a warning with the headline `b`, which then becomes
/// critical.
fn growing() -> [(Vec<Finding>, Incident); 3] {
    let finding =
        |id: &str, severity| Finding { incident: Some("i1".to_owned()), severity, ..firing(id) };
    let [mild, wide, worse] = [
        finding("a", Severity::Warning),
        finding("b", Severity::Warning),
        finding("b", Severity::Critical),
    ];
    let [one, two, three] =
        [incident(&[&mild]), incident(&[&wide, &mild]), incident(&[&worse, &mild])];
    [(vec![mild.clone()], one), (vec![mild.clone(), wide], two), (vec![worse, mild], three)]
}

/// Returns the messages of four runs: one run for each stage of [`growing`], and one run after the incident is over.
fn messages(kind: ReceiverKind) -> Vec<Vec<Value>> {
    let receiver = || {
        receiver(kind, |options| {
            if kind == ReceiverKind::PagerDuty {
                options.routing_key = Some("key".to_owned().into());
            }
            if kind == ReceiverKind::Webhook {
                let template = r#"{"is": "{{status}} {{severity}} {{rule}}", "of": {{incident}}}"#;
                options.template = Some(template.to_owned());
            }
        })
    };
    let mut stages = growing().to_vec();
    let (mut findings, mut over) = stages[2].clone();
    for finding in &mut findings {
        finding.status = Status::Resolved;
    }
    over.status = Status::Resolved;
    stages.push((findings, over));
    let answer = match kind {
        ReceiverKind::PagerDuty => (202, ""),
        _ => (200, "ok"),
    };
    let mut notified = Notified::default();
    let sent = stages.iter().map(|(findings, incident)| {
        let found = Found { incidents: std::slice::from_ref(incident), findings, is_cut: false };
        let run = run_with(found, receiver(), &notified, [Some(answer); 3]);
        notified = run.notified;
        run.sent.into_iter().map(|(_, body)| body).collect()
    });
    let sent = sent.collect();
    assert_eq!(notified, Notified::default());
    sent
}

#[test]
fn an_incident_causes_a_message_when_it_begins_becomes_more_severe_and_ends() {
    let slack = messages(ReceiverKind::Slack);
    let heads: Vec<Vec<&str>> = slack
        .iter()
        .map(|run| {
            let texts = run.iter().map(|one| one["text"].as_str().unwrap());
            texts.map(|text| &text[..text.find(": eu").unwrap()]).collect()
        })
        .collect();
    assert_eq!(
        heads,
        [vec!["*warning*"], vec![], vec!["*critical, previously warning*"], vec!["*resolved*"]]
    );
    let webhook = messages(ReceiverKind::Webhook);
    let contents: Vec<Vec<&Value>> =
        webhook.iter().map(|run| run.iter().map(|one| &one["is"]).collect()).collect();
    assert_eq!(
        contents,
        [
            vec!["firing warning rule a"],
            vec![],
            vec!["firing critical rule b"],
            vec!["resolved critical rule b"]
        ]
    );
    let parts = webhook[2][0]["of"]["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 2);
    assert_eq!(webhook[3][0]["of"]["status"], "resolved");
    let pagerduty = messages(ReceiverKind::PagerDuty);
    let events: Vec<&Value> = pagerduty.iter().flatten().collect();
    let actions: Vec<&Value> = events.iter().map(|event| &event["event_action"]).collect();
    assert_eq!(actions, ["trigger", "trigger", "resolve"]);
    assert_eq!(events[1]["payload"]["severity"], "critical");
    let key = "tallyfold/eu/i1";
    assert!(events.iter().all(|event| event["dedup_key"] == key));
}

#[test]
fn the_labels_of_an_incident_change_only_when_it_becomes_more_severe() {
    let sent = messages(ReceiverKind::Alertmanager);
    let alerts: Vec<&Vec<Value>> = sent.iter().map(|run| run[0].as_array().unwrap()).collect();
    let counts: Vec<usize> = alerts.iter().map(|run| run.len()).collect();
    assert_eq!(counts, [1, 1, 2, 1]);
    // The headline and the text have changed, but the labels have not.
    assert_eq!(alerts[0][0]["labels"], alerts[1][0]["labels"]);
    assert_eq!(alerts[1][0]["labels"]["incident"], "i1");
    assert_eq!(alerts[1][0]["labels"]["alertname"], "rule a");
    assert_eq!(alerts[1][0]["annotations"]["summary"], "b is <wrong> & bad");
    assert_eq!(alerts[2][0]["labels"]["severity"], "critical");
    // The milder alert ends in the third run, and the critical alert in the fourth.
    assert_eq!(alerts[2][1]["labels"], alerts[0][0]["labels"]);
    assert_eq!(alerts[2][1]["endsAt"], NOW);
    assert_eq!(alerts[3][0]["labels"], alerts[2][0]["labels"]);
}

#[test]
fn an_alert_ends_with_each_severity_that_an_alertmanager_may_know() {
    let [(mild, one), _, (worse, two)] = growing();
    let alertmanager = || receiver(ReceiverKind::Alertmanager, |_| {});
    let mut over = (worse.clone(), two.clone());
    over.0.iter_mut().for_each(|finding| finding.status = Status::Resolved);
    over.1.status = Status::Resolved;
    let run = |(findings, incident): (&[Finding], &Incident),
               before: &Notified,
               answers: Vec<Answer>| {
        let found = Found { incidents: std::slice::from_ref(incident), findings, is_cut: false };
        run_with(found, alertmanager(), before, answers)
    };
    let ended = |run: &Run| -> Vec<String> {
        let alerts = run.sent[0].1.as_array().unwrap().iter();
        let ended = alerts.filter(|alert| alert["endsAt"].as_str().unwrap() <= NOW);
        let severity = |alert: &Value| alert["labels"]["severity"].as_str().unwrap().to_owned();
        ended.map(severity).collect()
    };
    let begun = run((&mild, &one), &Notified::default(), vec![]);
    let lost = run((&worse, &two), &begun.notified, vec![Some((503, "")); 99]);
    let lost = run((&worse, &two), &lost.notified, vec![None; 99]);
    let later = run((&worse, &two), &lost.notified, vec![]);
    assert_eq!(ended(&later), ["warning"]);
    assert!(ended(&run((&worse, &two), &later.notified, vec![])).is_empty());
    let over = run((&over.0, &over.1), &lost.notified, vec![]);
    assert_eq!(ended(&over), ["critical", "warning"]);
    assert_eq!(over.notified, Notified::default());
}

#[test]
fn a_refused_message_about_a_higher_severity_is_sent_again() {
    let [(mild, one), _, (worse, two)] = growing();
    let found = |findings, incident| Found {
        incidents: std::slice::from_ref(incident),
        findings,
        is_cut: false,
    };
    let begun = run_with(found(&mild, &one), webhook(), &Notified::default(), []);
    let refused = || [Some((400, ""))];
    let lost = run_with(found(&worse, &two), webhook(), &begun.notified, refused());
    assert_eq!(lost.sent.len(), 1);
    let again = run_with(found(&worse, &two), webhook(), &lost.notified, []);
    assert_eq!(again.sent.len(), 1);
    let known = run_with(found(&worse, &two), webhook(), &again.notified, []);
    assert!(known.sent.is_empty());
    // A lower severity causes no message, and a return to the earlier severity doesn't either.
    let milder = run_with(found(&mild, &one), webhook(), &known.notified, []);
    assert!(milder.sent.is_empty());
    let back = run_with(found(&worse, &two), webhook(), &milder.notified, []);
    assert!(back.sent.is_empty());
}

#[test]
fn an_alertmanager_gets_firing_alerts_in_each_run_and_the_ends_of_alerts() {
    let alertmanager = || receiver(ReceiverKind::Alertmanager, |_| {});
    let mut five = ["a", "b", "c", "e", "f"].map(firing);
    five[0].severity = Severity::Warning;
    let before = run(&five, alertmanager(), &Notified::default(), []);
    assert_eq!(before.sent[0].0, "https://hooks.example/T0/secret-path/api/v2/alerts");
    let mut silenced = firing("f");
    silenced.silenced = true;
    let mut ahead = finding("e", Status::Resolved);
    ahead.resolved = Some(at("2026-01-01T03:00:00Z"));
    let now = [
        firing("a"),
        finding("b", Status::Resolved),
        // No receiver was notified of this incident.
        finding("d", Status::Resolved),
        // The end is in the future, because a clock was ahead.
        ahead,
        silenced,
    ];
    let after = run(&now, alertmanager(), &before.notified, []);
    let sent = after.sent[0].1.as_array().unwrap();
    let annotations = &sent[0]["annotations"];
    assert_eq!(annotations["description"], "page the data team");
    assert_eq!(annotations["runbook_url"], "https://wiki.example/failing");
    let ends: Vec<[&str; 3]> = sent
        .iter()
        .map(|one| {
            let texts = [&one["labels"]["alertname"], &one["labels"]["severity"], &one["endsAt"]];
            texts.map(|text| text.as_str().unwrap())
        })
        .collect();
    assert_eq!(
        ends,
        [
            ["rule a", "critical", "2026-01-01T04:00:00Z"],
            ["rule b", "critical", "2026-01-01T01:00:00Z"],
            // The alert has no finding, for example because its rule was removed, so it ends now.
            ["rule c", "critical", "2026-01-01T02:00:00Z"],
            ["rule e", "critical", "2026-01-01T02:00:00Z"],
            // The more severe alert has other labels, so this alert ends.
            ["rule a", "warning", "2026-01-01T02:00:00Z"],
        ]
    );
    assert_eq!(sent[0]["startsAt"], "2026-01-01T00:00:00Z");
    assert_eq!(
        sent[0]["annotations"]["query"],
        "tallyfold delivery --from 2026-01-01T00:00:00Z --to 2026-01-01T00:15:00Z --by integration \
         --where 'integration=a b' --cluster eu"
    );
    // The state still contains the silenced alert, so a run without findings ends two alerts.
    let nothing = run(&[], alertmanager(), &after.notified, []);
    assert_eq!(nothing.sent[0].1.as_array().unwrap().len(), 2);
    // If the check left out findings, an alert that isn't among them may still fire, so no end is sent.
    let none = Found { incidents: &[], findings: &[], is_cut: true };
    let cut = run_with(none, alertmanager(), &after.notified, []);
    assert!(cut.sent.is_empty());
    // A message may have arrived although the connection failed. So a later run ends both the old and the new alerts.
    let lost = run(&[firing("n")], alertmanager(), &after.notified, vec![None; 99]);
    let later = run(&[], alertmanager(), &lost.notified, []);
    assert_eq!(later.sent[0].1.as_array().unwrap().len(), 3);
}

#[test]
fn errors_name_missing_and_invalid_options() {
    let refused = |kind, change: fn(&mut ReceiverOptions)| {
        let mut options = ReceiverOptions::with_defaults("x".to_owned());
        options.url = Some("https://hooks.example".to_owned());
        change(&mut options);
        let error = Receiver::new(kind, &options).err().unwrap();
        format!("{} {}", error.code(), error.argument_name().unwrap_or_default())
    };
    let webhook = ReceiverKind::Webhook;
    assert_eq!(refused(webhook, |options| options.url = None), "missing_argument url");
    assert_eq!(
        refused(webhook, |options| options.template = Some("{".to_owned())),
        "invalid_argument template"
    );
    assert_eq!(
        refused(webhook, |options| options.url = Some("http://chat.example".to_owned())),
        "insecure_base_address url"
    );
    assert_eq!(
        refused(ReceiverKind::Slack, |options| options.template = Some("{}".to_owned())),
        "invalid_argument template"
    );
    assert_eq!(refused(ReceiverKind::PagerDuty, |_| {}), "missing_argument routing_key");
    assert_eq!(refused(ReceiverKind::Opsgenie, |_| {}), "missing_argument headers");
}

#[test]
fn opsgenie_creates_an_alert_and_closes_it_by_its_alias() {
    let team = || {
        receiver(ReceiverKind::Opsgenie, |options| {
            options.url = None;
            options.headers = genie_key();
        })
    };
    let accepted = || [Some((202, r#"{"result": "Request will be processed"}"#))];
    let mut long = firing("a");
    long.sentence = "x".repeat(200);
    let begun = run(&[long], team(), &Notified::default(), accepted());
    let (url, created) = &begun.sent[0];
    assert_eq!(url, "https://api.opsgenie.com/v2/alerts");
    let message = created["message"].as_str().unwrap();
    assert_eq!(message.chars().count(), 130);
    assert!(message.starts_with("rule a: xxx") && message.ends_with('…'));
    assert!(created["description"].as_str().unwrap().contains(&"x".repeat(200)));
    assert_eq!((&created["priority"], &created["entity"]), (&json!("P1"), &json!("eu")));
    assert_eq!(created["details"]["team"], "data");
    assert_eq!(created["details"]["runbook"], "https://wiki.example/failing");
    let alias = created["alias"].as_str().unwrap();
    assert!(alias.starts_with("tallyfold-eu-"), "{alias}");
    let over = run(&[], team(), &begun.notified, accepted());
    let (url, closed) = &over.sent[0];
    assert_eq!(
        *url,
        format!("https://api.opsgenie.com/v2/alerts/{alias}/close?identifierType=alias")
    );
    assert!(closed["note"].is_string() && closed.get("message").is_none());
    assert!(over.notified.to_json().len() < begun.notified.to_json().len());

    // The query of an address stays at its end.
    for url in ["https://gateway.example/?key=1", "https://gateway.example/v2/alerts/?key=1"] {
        let team = receiver(ReceiverKind::Opsgenie, |options| {
            options.url = Some(url.to_owned());
            options.headers = genie_key();
        });
        let begun = run(&[firing("a")], team.clone(), &Notified::default(), accepted());
        assert_eq!(begun.sent[0].0, "https://gateway.example/v2/alerts?key=1");
        let over = run(&[], team, &begun.notified, accepted());
        let close = "close?identifierType=alias&key=1";
        assert_eq!(over.sent[0].0, format!("https://gateway.example/v2/alerts/{alias}/{close}"));
    }
}

#[test]
fn teams_gets_an_adaptive_card() {
    let channel = || receiver(ReceiverKind::Teams, |_| {});
    let accepted = || [Some((202, ""))];
    let begun = run(&[firing("a")], channel(), &Notified::default(), accepted());
    let (url, message) = &begun.sent[0];
    assert_eq!(url, "https://hooks.example/T0/secret-path");
    assert_eq!(message["type"], "message");
    let [attachment] = &message["attachments"].as_array().unwrap()[..] else { panic!("{message}") };
    assert_eq!(attachment["contentType"], "application/vnd.microsoft.card.adaptive");
    let card = &attachment["content"];
    assert_eq!((&card["type"], &card["version"]), (&json!("AdaptiveCard"), &json!("1.4")));
    let block = |text: &str| json!({ "type": "TextBlock", "text": text, "wrap": true });
    let mut head = block("critical: rule a");
    head["weight"] = json!("bolder");
    head["color"] = json!("attention");
    let body = card["body"].as_array().unwrap();
    assert_eq!(body[0], head);
    assert_eq!(body[1], block("a is <wrong> & bad"));
    assert_eq!(body[2], block("page the data team"));
    assert_eq!(body[3]["type"], "FactSet");
    assert_eq!(body[3]["facts"][0], json!({ "title": "Cluster", "value": "eu" }));
    let run_of = json!({ "type": "TextRun", "text": COMMAND, "fontType": "monospace" });
    assert_eq!(body[4], json!({ "type": "RichTextBlock", "inlines": [run_of] }));
    assert_eq!(
        card["actions"],
        json!([{ "type": "Action.OpenUrl", "title": "Runbook", "url": "https://wiki.example/failing" }])
    );
    let over = run(&[], channel(), &begun.notified, accepted());
    let card = &over.sent[0].1["attachments"][0]["content"];
    assert_eq!(card["body"][0]["color"], "good");
    assert_eq!(card["body"][0]["text"], "resolved: rule a");
    assert_eq!(card["body"].as_array().unwrap().len(), 4);
}

#[test]
fn a_damaged_state_is_refused() {
    let state = run(&[firing("a")], webhook(), &Notified::default(), []);
    let json = state.notified.to_json();
    for at in 0..json.len() {
        let mut damaged = json.clone().into_bytes();
        damaged[at] ^= 1;
        assert!(Notified::from_json(&damaged).is_err(), "byte {at}");
    }
}

#[test]
fn a_finding_is_read_back_as_it_was_written() {
    let finding = finding("a", Status::Resolved);
    let json = serde_json::to_string(&finding).unwrap();
    assert_eq!(serde_json::from_str::<Finding>(&json).unwrap(), finding);
}

#[test]
fn a_value_in_a_message_notifies_nobody_and_links_to_nothing() {
    let mut finding = firing("a");
    finding.sentence =
        "\"<!channel> <@U1> @everyone [ok](https://evil.example) \u{202e}\u{1b}[2J\" fails"
            .to_owned();
    // The messages leave out a command with such a value, because a changed command would find nothing.
    finding.query.r#where = vec![(Dimension::Integration, vec!["<!channel>".into()])];
    let separated = "\"<\u{200b}!channel> <\u{200b}@\u{200b}U1> @\u{200b}everyone [ok]\u{200b}(https:\u{200b}//evil.example) \u{fffd}\u{fffd}[2J\" fails";
    let sent = |kind: ReceiverKind| {
        let receiver = receiver(kind, |options| {
            if kind == ReceiverKind::PagerDuty {
                options.routing_key = Some("key".to_owned().into());
            }
        });
        run(&[finding.clone()], receiver, &Notified::default(), []).sent[0].1.clone()
    };
    let text = format!(
        "eu: rule a: {separated} [incident a] — page the data team — https://wiki.example/failing"
    );
    assert_eq!(sent(ReceiverKind::Webhook)["text"], format!("critical: {text}"));
    assert_eq!(sent(ReceiverKind::PagerDuty)["payload"]["summary"], format!("rule a: {separated}"));
    assert_eq!(sent(ReceiverKind::Alertmanager)[0]["annotations"]["summary"], separated);
    let slack = text.replace('<', "&lt;").replace('>', "&gt;");
    assert_eq!(sent(ReceiverKind::Slack)["text"], format!("*critical*: {slack}"));
}
