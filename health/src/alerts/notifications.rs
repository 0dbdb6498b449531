//! Plans and sends the messages of a run to all receivers: a state machine without I/O. Its state contains the alerts that each
//! receiver was notified of.

use std::collections::{BTreeMap, VecDeque};
use std::mem;

use serde::{Deserialize, Serialize};
use tallyfold::keeper::DocumentKind;
use tallyfold::sending::{Delivery, Push, PushOptions, PushStep, Source};
use tallyfold::{Code, Error, Now, Result, Secret, Timestamp};

use super::alert::{Alert, Alerts, Current, Found, MISSED_MS};
use super::kinds::{Notice, ReceiverKind, Writer, extended};
use super::options::{NotifyOptions, ReceiverOptions};

/// The default name of the cluster in a notice.
const UNNAMED: &str = "default";

/// A receiver of alerts, whose options were checked.
#[derive(Clone)]
pub struct Receiver {
    kind: ReceiverKind,
    /// The key of the receiver in the state. The key does not contain the address, which may be a secret.
    key: String,
    push: PushOptions,
    /// Secrets that errors must not quote, in addition to the headers and the address.
    secrets: Vec<Secret>,
    writer: Writer,
}

impl Receiver {
    /// Checks the options of a receiver.
    ///
    /// # Errors
    /// `missing_argument` for a missing option that this kind needs; `invalid_argument` for an option that it doesn't have and
    /// for an invalid template; `invalid_base_address` and `insecure_base_address` for the address.
    pub fn new(kind: ReceiverKind, options: &ReceiverOptions) -> Result<Self> {
        let form = kind.form();
        let foreign = [
            ("template", options.template.is_some()),
            ("routing_key", options.routing_key.is_some()),
        ];
        for (name, is_given) in foreign {
            if is_given && !form.options.contains(&name) {
                let message = format!("{} doesn't have this option", form.about);
                return Err(Error::argument(name, Code::InvalidArgument, message));
            }
        }
        let url = options.url.as_deref().or(form.usual_url);
        let url = url.ok_or_else(|| {
            let message = format!("{} needs an address", form.about);
            Error::argument("url", Code::MissingArgument, message)
        })?;
        let push = PushOptions::with_defaults(kind.completed(url))
            .headers(options.headers.clone())
            .allow_http(options.allow_http);
        push.check(&form.delivery)?;
        Ok(Self {
            key: format!("{kind}:{}", options.name),
            secrets: options.routing_key.iter().cloned().collect(),
            writer: (form.writer)(options)?,
            kind,
            push,
        })
    }
}

/// A message to a receiver, which a push sends.
#[derive(Clone, Debug)]
pub struct Posted {
    /// The message; `None` after the push has taken it.
    body: Option<String>,
    delivery: &'static Delivery,
    secrets: Vec<Secret>,
}

impl Source for Posted {
    fn delivery(&self) -> Result<&'static Delivery> {
        Ok(self.delivery)
    }

    fn media_type(&self) -> &'static str {
        "application/json"
    }

    fn next_message(&mut self, _: usize, out: &mut Vec<u8>) -> Option<usize> {
        out.clear();
        out.extend_from_slice(self.body.take()?.as_bytes());
        Some(1)
    }

    fn skip(&mut self, samples: u64) -> u64 {
        samples - u64::from(samples > 0 && self.body.take().is_some())
    }

    fn secrets(&self) -> &[Secret] {
        &self.secrets
    }
}

/// The result of the messages to a receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Receipt {
    /// The kind of receiver and its name, such as `slack:data-team`.
    pub receiver: String,
    /// How many messages the receiver accepted.
    pub messages: u64,
    /// How many messages were sent again.
    pub retries: u64,
    /// The error code of the first message that the receiver did not accept. The next call sends this message again, unless the
    /// receiver refused a message about an incident that began and ended between two checks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The status of the response to this message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The error of this message, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The messages of a run to all receivers, one after the other.
///
/// Get the next push from [`Notifications::delivery`], and run it to its end, whether it succeeds or fails. When none is
/// left, [`Notifications::finish`] returns the state for the next run, which sends the messages that were not accepted.
pub struct Notifications {
    receivers: VecDeque<Receiver>,
    current: Current,
    options: NotifyOptions,
    notified: Notified,
    /// For each receiver, the alerts that began and ended between two checks and whose end it knows.
    told: BTreeMap<String, Alerts>,
    /// The receiver that gets messages now.
    busy: Option<Busy>,
    outcomes: Vec<ReceiverOutcome>,
}

/// The result of the messages to a receiver, together with the error itself.
#[derive(Clone, Debug)]
pub struct ReceiverOutcome {
    /// The result of the messages.
    pub receipt: Receipt,
    /// The error of the first message that the receiver did not accept.
    pub error: Option<Error>,
}

/// The receiver that gets messages now, and its messages in order.
struct Busy {
    receiver: Receiver,
    planned: VecDeque<Planned>,
    under_way: Option<(Box<Push<Posted>>, Effect)>,
    outcome: ReceiverOutcome,
}

/// A message that is still to be sent.
struct Planned {
    body: String,
    /// The path that is appended to the receiver's address.
    path: String,
    effect: Effect,
}

/// How a message changes what its receiver knows.
enum Effect {
    /// The receiver knows exactly these alerts.
    All(Alerts),
    /// The receiver also knows this alert.
    Begins(String, Box<Alert>),
    /// The receiver no longer knows the alert with this identifier.
    Ends(String),
    /// The receiver knows that this alert, which it was not notified of before, has ended.
    Missed(String, Box<Alert>),
}

impl Notifications {
    /// Prepares messages about the incidents of a check. `notified` has what the receivers were notified of before.
    ///
    /// # Errors
    /// `invalid_argument` for two receivers of one kind with the same name.
    pub fn new<'c>(
        found: impl Into<Found<'c>>,
        receivers: impl IntoIterator<Item = Receiver>,
        mut notified: Notified,
        options: &NotifyOptions,
        now: Timestamp,
    ) -> Result<Self> {
        let receivers: VecDeque<Receiver> = receivers.into_iter().collect();
        for (place, receiver) in receivers.iter().enumerate() {
            let mut others = receivers.iter().take(place);
            if others.any(|other| other.key == receiver.key) {
                let message = "two receivers of one kind have this name";
                return Err(Error::argument("name", Code::InvalidArgument, message));
            }
        }
        let current = Current::of(found.into(), options, now);
        let mut told = BTreeMap::new();
        for (receiver, alerts) in &mut notified.receivers {
            let (mut own, known): (Alerts, Alerts) =
                mem::take(alerts).into_iter().partition(|(_, alert)| alert.is_told);
            own.retain(|_, alert| {
                let ended = alert.ended.unwrap_or(now);
                now.unix_ms() - ended.unix_ms() <= MISSED_MS
            });
            told.insert(receiver.clone(), own);
            *alerts = known;
            current.record_ends(alerts);
        }
        Ok(Self {
            receivers,
            current,
            options: options.clone(),
            notified,
            told,
            busy: None,
            outcomes: Vec::new(),
        })
    }

    /// Returns the next push, with the position of its receiver in the list, or `None` after the last push. Returns the
    /// same push until it has ended.
    pub fn delivery(&mut self) -> Option<(usize, &mut Push<Posted>)> {
        while !self.is_under_way() {
            if !self.send_next() && !self.begin_next() {
                return None;
            }
        }
        let place = self.outcomes.len();
        let (push, _) = self.busy.as_mut()?.under_way.as_mut()?;
        Some((place, push))
    }

    /// Returns the next step of the push that is under way, or else of the next push; `None` when no push is left. This
    /// method is for callers that send the messages to all receivers in the same way.
    ///
    /// # Errors
    /// `out_of_order` while a message is being sent. An error that ends a push is part of its outcome instead.
    pub fn step<T>(&mut self, now: Now, of: fn(PushStep<'_>) -> T) -> Result<Option<T>> {
        while let Some((_, push)) = self.delivery() {
            let step = match push.step(now) {
                // The caller does not need these steps: `finish` returns a state with the accepted messages.
                Ok(PushStep::Done | PushStep::Finished { .. }) => continue,
                step => step.map(of),
            };
            match step {
                Err(_) if push.outcome().is_some() => {}
                step => return step.map(Some),
            }
        }
        Ok(None)
    }

    /// Returns the push that is under way.
    ///
    /// # Errors
    /// `out_of_order` if no push is under way.
    pub fn under_way(&mut self) -> Result<&mut Push<Posted>> {
        let under_way = self.busy.as_mut().and_then(|busy| busy.under_way.as_mut());
        let (push, _) = under_way.ok_or_else(|| {
            Error::new(Code::OutOfOrder, "no message is under way: take the next step first")
        })?;
        Ok(push)
    }

    /// Returns the state for the next run, and the results of the messages. If a push has not ended, the state treats its message
    /// as possibly accepted. Afterwards, no message is left to send.
    #[must_use]
    pub fn finish(&mut self) -> (Notified, Vec<ReceiverOutcome>) {
        self.receivers.clear();
        if let Some(mut busy) = self.busy.take() {
            if let Some((_, effect)) = busy.under_way.take() {
                let known = self.notified.receivers.entry(busy.receiver.key);
                effect.maybe(known.or_default());
            }
            self.outcomes.push(busy.outcome);
        }
        for (receiver, told) in mem::take(&mut self.told) {
            let known = self.notified.receivers.entry(receiver).or_default();
            for (id, alert) in told {
                known.entry(id).or_insert(alert);
            }
        }
        self.notified.receivers.retain(|_, alerts| !alerts.is_empty());
        (mem::take(&mut self.notified), mem::take(&mut self.outcomes))
    }

    /// Returns whether a push is under way. Records the outcome of a push that has ended.
    fn is_under_way(&mut self) -> bool {
        let Some(busy) = &mut self.busy else {
            return false;
        };
        let Some((push, effect)) = busy.under_way.take() else {
            return false;
        };
        let ended = match push.outcome() {
            None => {
                busy.under_way = Some((push, effect));
                return true;
            }
            Some(ended) => ended.map_err(Clone::clone),
        };
        busy.outcome.receipt.retries += push.report().retries;
        let key = &busy.receiver.key;
        let known = self.notified.receivers.entry(key.clone()).or_default();
        let told = self.told.entry(key.clone()).or_default();
        match ended {
            Ok(()) => {
                busy.outcome.receipt.messages += 1;
                effect.surely(known, told);
            }
            Err(error) => {
                // A receiver that refuses the beginning of an alert doesn't know the alert, unless it accepted an earlier
                // attempt whose answer was lost. After `Effect::All`, the alerts count as known even so: an Alertmanager
                // accepts the end of an alert that it doesn't know.
                let is_first = push.report().retries == 0;
                let is_refused = is_first && matches!(error.status(), Some(400..500));
                if !is_refused || matches!(effect, Effect::All(_)) {
                    effect.maybe(known);
                } else if matches!(effect, Effect::Missed(..)) {
                    effect.surely(known, told);
                }
                // A receiver that refuses only this message may accept the other messages.
                if !matches!(error.status(), Some(400 | 413 | 422)) {
                    let planned = busy.planned.drain(..).map(|planned| planned.effect);
                    for missed in planned.filter(|effect| matches!(effect, Effect::Missed(..))) {
                        match is_refused {
                            true => missed.surely(known, told),
                            false => missed.maybe(known),
                        }
                    }
                }
                busy.outcome.fail(error);
            }
        }
        false
    }

    /// Begins to send the next message to the current receiver. Returns whether there is a message.
    fn send_next(&mut self) -> bool {
        let Some(busy) = &mut self.busy else {
            return false;
        };
        let Some(Planned { body, path, effect }) = busy.planned.pop_front() else {
            return false;
        };
        let posted = Posted {
            body: Some(body),
            delivery: &busy.receiver.kind.form().delivery,
            secrets: busy.receiver.secrets.clone(),
        };
        let options = busy
            .receiver
            .push
            .clone()
            .url(extended(&busy.receiver.push.url, &path))
            .patience_ms(self.options.patience_ms)
            .seed(self.options.seed);
        match Push::new(posted, &options) {
            Ok(push) => busy.under_way = Some((Box::new(push), effect)),
            Err(error) => busy.outcome.fail(error),
        }
        true
    }

    /// Plans the messages for the next receiver. Returns whether there is a receiver.
    fn begin_next(&mut self) -> bool {
        self.outcomes.extend(self.busy.take().map(|busy| busy.outcome));
        let Some(receiver) = self.receivers.pop_front() else {
            return false;
        };
        let known = self.notified.receivers.entry(receiver.key.clone());
        let known = known.or_default();
        let told = self.told.entry(receiver.key.clone()).or_default();
        let mut current = self.current.clone();
        current.relabel(known);
        let planned = match &receiver.writer {
            Writer::All(write) => every_run(&current, known, &self.options, *write),
            Writer::Each(write) => {
                let path_of = receiver.kind.form().path_of;
                let plan = |notice: &Notice<'_>, effect| Planned {
                    body: write(notice),
                    path: path_of(notice),
                    effect,
                };
                once(&current, (known, told), &self.options, plan)
            }
        };
        let receipt = Receipt {
            receiver: receiver.key.clone(),
            messages: 0,
            retries: 0,
            code: None,
            status: None,
            error: None,
        };
        self.busy = Some(Busy {
            receiver,
            planned,
            under_way: None,
            outcome: ReceiverOutcome { receipt, error: None },
        });
        true
    }
}

/// Plans one message with all firing alerts, and with the ends of alerts that the receiver knows. Plans none if there are
/// no such alerts.
fn every_run(
    current: &Current,
    known: &Alerts,
    options: &NotifyOptions,
    write: fn(&[Notice<'_>], &str) -> String,
) -> VecDeque<Planned> {
    let now = current.now;
    let lifetime_ms = i64::try_from(options.alert_for_ms).unwrap_or(i64::MAX);
    let ends_at = Timestamp::from_unix_ms(now.unix_ms().saturating_add(lifetime_ms));
    let (firing, over) = (current.firing(known), current.over(known));
    let notice = |id, alert, until| Notice {
        id,
        alert,
        before: None,
        until,
        cluster: options.cluster.as_deref().unwrap_or(UNNAMED),
    };
    let mut notices: Vec<Notice<'_>> = Vec::new();
    notices.extend(firing.iter().map(|(id, alert)| notice(id, alert, None)));
    // With an end in the future, the receiver would let the alert fire until then, so the end is at most `now`.
    notices.extend(over.iter().map(|(id, over)| notice(id, &over.alert, Some(over.at.min(now)))));
    // The labels differ only if the alert became more severe (`Current::relabel`). For the receiver, an alert with other
    // labels is a new alert, so the earlier one is over.
    let relabeled = known.iter().flat_map(|(id, alert)| {
        let now = firing.get(id);
        let own = now.is_some_and(|now| now.labels != alert.labels);
        let labels = alert.earlier.iter().chain(own.then_some(&alert.labels));
        labels.map(move |labels| (id, alert.labeled(labels)))
    });
    let relabeled: Vec<_> = relabeled.collect();
    notices.extend(relabeled.iter().map(|(id, alert)| notice(id, alert, Some(now))));
    if notices.is_empty() {
        return VecDeque::new();
    }
    let body = write(&notices, &ends_at.unwrap_or(now).to_string());
    let kept = current.kept(known);
    let effect = Effect::All(firing.into_iter().chain(kept).collect());
    let path = String::new();
    VecDeque::from([Planned { body, path, effect }])
}

/// Plans a message for each alert that has ended, has begun or has become more severe. For the other firing alerts, updates what
/// the receiver knows.
fn once(
    current: &Current,
    (known, told): (&mut Alerts, &Alerts),
    options: &NotifyOptions,
    plan: impl Fn(&Notice<'_>, Effect) -> Planned,
) -> VecDeque<Planned> {
    let cluster = options.cluster.as_deref().unwrap_or(UNNAMED);
    let mut planned = VecDeque::new();
    let ends = current.over(known).into_iter().map(|end| (end, false));
    let missed = current.missed(known, told);
    for ((id, over), is_missed) in ends.chain(missed.into_iter().map(|end| (end, true))) {
        let notice =
            Notice { id: &id, alert: &over.alert, before: None, until: Some(over.at), cluster };
        let effect = if is_missed {
            let ended = Some(over.at);
            let alert = over.alert.clone();
            Effect::Missed(id.clone(), Box::new(Alert { ended, ..alert }))
        } else {
            Effect::Ends(id.clone())
        };
        planned.push_back(plan(&notice, effect));
    }
    for (id, alert) in current.firing(known) {
        let known = known.get_mut(&id);
        let before = known.as_ref().map(|known| known.severity);
        if let Some(known) = known.filter(|known| !known.is_in_doubt && !alert.is_worse(known)) {
            *known = alert;
            continue;
        }
        let notice = Notice {
            id: &id,
            alert: &alert,
            before: before.filter(|before| alert.severity > *before),
            until: None,
            cluster,
        };
        let effect = Effect::Begins(id.clone(), Box::new(alert.clone()));
        planned.push_back(plan(&notice, effect));
    }
    planned
}

impl Effect {
    /// Records that the receiver has accepted the message.
    fn surely(self, known: &mut Alerts, told: &mut Alerts) {
        match self {
            Self::All(alerts) => *known = alerts,
            Self::Begins(id, alert) => {
                known.insert(id, *alert);
            }
            Self::Ends(id) => {
                known.remove(&id);
            }
            Self::Missed(id, mut alert) => {
                alert.is_told = true;
                told.insert(id, *alert);
            }
        }
    }

    /// Records that the receiver may have accepted the message. The next run sends the change again. The receiver is assumed to
    /// know both the earlier alerts and the alerts of the message, so that a later run sends the end of each.
    fn maybe(self, known: &mut Alerts) {
        match self {
            Self::All(alerts) => {
                for (id, mut alert) in alerts {
                    if let Some(before) = known.remove(&id) {
                        alert.earlier = before.earlier;
                        if before.labels != alert.labels {
                            alert.earlier.push(before.labels);
                        }
                    }
                    known.insert(id, alert);
                }
            }
            Self::Begins(id, mut alert) => {
                alert.is_in_doubt = true;
                known.entry(id).or_insert(*alert);
            }
            Self::Ends(_) => {}
            // The next check no longer has the alert. So the alert counts as known, and the next run sends its end.
            Self::Missed(id, alert) => {
                known.insert(id, *alert);
            }
        }
    }
}

impl ReceiverOutcome {
    /// Keeps the first error.
    fn fail(&mut self, error: Error) {
        if self.error.is_none() {
            self.receipt.code = Some(error.code().to_string());
            self.receipt.status = error.status();
            self.receipt.error = Some(error.to_string());
            self.error = Some(error);
        }
    }
}

/// The kind of the stored document.
const KIND: DocumentKind =
    DocumentKind { format: "tallyfold-notified/1", what: "state of notifications" };

/// The alerts that each receiver was notified of. An alert is removed when the receiver knows its end, or a day after the end if
/// the alert began and ended between two checks.
///
/// [`Notified::to_json`] and [`Notified::from_json`] write and read it between runs. Its size grows only with the alerts
/// that fire, and with the alerts of the last day that began and ended between two checks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Notified {
    /// The alerts that each receiver knows, by the key of the receiver.
    pub(crate) receivers: BTreeMap<String, Alerts>,
}

/// The fields of the document.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    receivers: Notified,
}

impl Notified {
    /// Reads what [`Notified::to_json`] wrote.
    ///
    /// # Errors
    /// `invalid_checkpoint` if the document has another kind, is truncated or was changed.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        let fields = KIND.read(json)?;
        let fields: Fields = serde_json::from_slice(&fields).map_err(|error| KIND.wrong(error))?;
        Ok(fields.receivers)
    }

    /// Returns the state as a document with a checksum.
    #[must_use]
    pub fn to_json(&self) -> String {
        let fields = Fields { receivers: self.clone() };
        // Writing maps of texts as JSON can't fail.
        KIND.write(&serde_json::to_string(&fields).unwrap_or_default())
    }
}
