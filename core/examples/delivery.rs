//! Prints the counts of an hour by integration, over HTTP with ureq.
//!
//! The address and the credentials come from the environment: TALLYFOLD_CLUSTER_ENDPOINT, TALLYFOLD_CLIENT_ID,
//! TALLYFOLD_CLIENT_SECRET and TALLYFOLD_CONTROL_AUDIENCE.
#![expect(
    clippy::disallowed_methods,
    reason = "unlike the core, this program reads clocks, waits and sends"
)]

use std::error::Error;
use std::io::Read;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, thread};

use tallyfold::{
    Call, Dimension, Frame, HostFailure, Machine, MachineOptions, Now, QueryOptions, Request, Step,
    Window,
};
use ureq::{Agent, http};

fn main() -> Result<(), Box<dyn Error>> {
    let machine = Machine::new(
        MachineOptions::default()
            .cluster_endpoint(env::var("TALLYFOLD_CLUSTER_ENDPOINT")?)
            .client_id(env::var("TALLYFOLD_CLIENT_ID")?)
            .client_secret(env::var("TALLYFOLD_CLIENT_SECRET")?)
            .control_audience(env::var("TALLYFOLD_CONTROL_AUDIENCE")?),
    )?;
    let hour = Window::parse("2026-01-31T09:00:00Z", "2026-01-31T10:00:00Z")?;
    let mut call = machine.event_delivery(&QueryOptions::new(hour, &[Dimension::Integration]))?;
    drive(&mut call)?;
    let table = call.output()?;
    for row in table.rows() {
        let name: Vec<&str> = row.values().collect();
        let counts = row.counts();
        println!("{} {} {}", name.join(" "), counts.success, counts.errors);
    }
    println!("total {}", table.totals().success);
    Ok(())
}

/// Carries out the steps of a call until it is done.
fn drive<T>(call: &mut Call<T>) -> Result<(), Box<dyn Error>> {
    // tallyfold itself decides what redirects and statuses mean.
    let agent: Agent = Agent::config_builder()
        .max_redirects(0)
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(30)))
        .build()
        .into();
    let begin = Instant::now();
    loop {
        let now = Now {
            monotonic_ms: begin.elapsed().as_millis() as u64,
            unix_ms: SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as i64,
        };
        match call.step(now)? {
            Step::Send(request) => exchange(&agent, &request, call)?,
            Step::Wait { ms } => thread::sleep(Duration::from_millis(ms.into())),
            Step::Done => return Ok(()),
            Step::ProvideToken { .. } | Step::Blocked { .. } => {
                unreachable!("the machine has a secret, and there is one call at a time")
            }
        }
    }
}

/// Sends a request, and passes the response to the call as it arrives.
fn exchange<T>(agent: &Agent, request: &Request, call: &mut Call<T>) -> Result<(), Box<dyn Error>> {
    let mut builder = http::Request::builder().method(request.method()).uri(request.url());
    for (name, value) in request.headers() {
        builder = builder.header(name, value);
    }
    let body = request.body().unwrap_or_default();
    let Ok(response) = agent.run(builder.body(body)?) else {
        return Ok(call.failed(HostFailure::Network, "")?);
    };
    let headers: Vec<(String, String)> = response
        .headers()
        .iter()
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            (name.to_string(), value.into_owned())
        })
        .collect();
    let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (&**n, &**v)).collect();
    if !call.head(response.status().as_u16(), &headers)? {
        return Ok(());
    }
    let mut body = response.into_body().into_reader();
    let mut chunk = [0; 16 * 1024];
    loop {
        match body.read(&mut chunk) {
            Ok(0) => return Ok(call.end()?),
            Ok(length) => call.chunk(&chunk[..length])?,
            Err(_) => return Ok(call.failed(HostFailure::Network, "")?),
        }
    }
}
