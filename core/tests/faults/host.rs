//! The smallest host that sends real requests. It uses ureq, which blocks.

use std::fmt::Write;
use std::io::{self, Read};
use std::time::Duration;

use serde_json::Value;
use tallyfold::{
    AuditLogsOptions, Call, Dimension, HostFailure, Machine, Now, Output, QueryOptions, Request,
    Result, Step, Timestamp, Window,
};
use ureq::{Agent, http};

use super::case::{number, options, text};

/// A client, the call that it makes, and clocks that advance only during waits.
pub(crate) struct Host {
    client: Machine,
    agent: Agent,
    call: String,
    query: QueryOptions,
    unix_ms: i64,
    waited_ms: u64,
    seen: String,
}

impl Host {
    pub(crate) fn new(file: &Value, run: &Value, address: &str) -> Self {
        let query = &file["query"];
        let dimensions = query["dimensions"].as_array().expect("a list").iter();
        let dimensions: Result<Vec<Dimension>> =
            dimensions.map(|name| Dimension::parse(text(name))).collect();
        let timeout = Duration::from_millis(number(&run["options"]["timeout_ms"]));
        let config = Agent::config_builder()
            .timeout_global(Some(timeout))
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None);
        Self {
            client: Machine::new(options(file, run, address)).expect("good options"),
            agent: config.build().into(),
            call: text(&run["call"]).to_owned(),
            query: QueryOptions::new(
                Window::parse(text(&query["start"]), text(&query["end"])).expect("a window"),
                &dimensions.expect("dimensions"),
            ),
            unix_ms: Timestamp::parse(text(&file["now"])).expect("a timestamp").unix_ms(),
            waited_ms: 0,
            seen: String::new(),
        }
    }

    /// Makes the run's call and drives it to its end.
    pub(crate) fn call(&mut self) -> Result<Output> {
        let mut call = match self.call.as_str() {
            "event_delivery" => self.client.event_delivery(&self.query).map(Call::untyped)?,
            "event_ingestion" => self.client.event_ingestion(&self.query).map(Call::untyped)?,
            "audit_logs" => {
                self.client.audit_logs(&AuditLogsOptions::default()).map(Call::untyped)?
            }
            other => panic!("unknown {other}"),
        };
        let outcome = self.drive(&mut call);
        if let Err(error) = &outcome {
            self.see(&format!("{error} {error:?}"));
            let again = call.output();
            assert_eq!(again.as_ref(), Err(error), "nothing but the error is left of a call");
        }
        self.see(&format!("{call:?} {:?}", self.client));
        outcome
    }

    /// Everything that could be printed during the run.
    pub(crate) fn seen(&self) -> &str {
        &self.seen
    }

    /// How long the calls had to wait.
    pub(crate) fn waited_ms(&self) -> u64 {
        self.waited_ms
    }

    fn drive(&mut self, call: &mut Call) -> Result<Output> {
        loop {
            let now = Now { monotonic_ms: self.waited_ms, unix_ms: self.unix_ms };
            let step = call.step(now)?;
            self.see(&format!("{step:?}"));
            match step {
                Step::Send(request) => {
                    let exchanged = exchange(&self.agent, &request, call);
                    let attempt = call.attempt();
                    self.see(&format!("{attempt:?} {call:?}"));
                    exchanged?;
                }
                Step::Wait { ms } => self.waited_ms += u64::from(ms),
                Step::Done => return call.output(),
                other => panic!("one call alone is never told {other:?}"),
            }
        }
    }

    fn see(&mut self, text: &str) {
        writeln!(self.seen, "{text}").expect("memory");
    }
}

/// Sends one request, and passes its response to the call.
fn exchange(agent: &Agent, request: &Request, call: &mut Call) -> Result<()> {
    let response = match send(agent, request) {
        Ok(response) => response,
        Err(ureq::Error::Timeout(_)) => return call.failed(HostFailure::Timeout, ""),
        Err(_) => return call.failed(HostFailure::Network, ""),
    };
    let headers: Vec<_> = response.headers().iter().collect();
    let headers: Vec<(&str, String)> = headers
        .into_iter()
        .map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes()).into()))
        .collect();
    let headers: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    if !call.head(response.status().as_u16(), &headers)? {
        return Ok(());
    }
    let mut body = response.into_body().into_reader();
    let mut chunk = [0; 64];
    loop {
        match body.read(&mut chunk) {
            Ok(0) => return call.end(),
            Ok(length) => call.chunk(&chunk[..length])?,
            Err(error) => return call.failed(failure_of(error), ""),
        }
    }
}

fn send(
    agent: &Agent,
    request: &Request,
) -> std::result::Result<http::Response<ureq::Body>, ureq::Error> {
    let builder = http::Request::builder().method(request.method()).uri(request.url());
    let builder =
        request.headers().fold(builder, |builder, (name, value)| builder.header(name, value));
    match request.body() {
        Some(body) => agent.run(builder.body(body).expect("a good request")),
        None => agent.run(builder.body(()).expect("a good request")),
    }
}

fn failure_of(error: io::Error) -> HostFailure {
    match ureq::Error::from(error) {
        ureq::Error::Timeout(_) => HostFailure::Timeout,
        _ => HostFailure::Network,
    }
}
