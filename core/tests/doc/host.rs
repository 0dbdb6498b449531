// The host of the examples in doc comments, which include this file: a machine, and the sandbox
// that responds to it.

use tallyfold::{Call, CountTable, Dimension, Machine, MachineOptions, Now, QueryOptions, Result, Step, Window};
use tallyfold_sandbox::{Sandbox, SandboxOptions};

const ADDRESS: &str = "https://cluster.example";

pub(crate) struct Host {
    pub(crate) machine: Machine,
    pub(crate) now: Now,
    sandbox: Sandbox,
}

#[allow(dead_code, reason = "no example needs all of it")]
impl Host {
    /// Starts with the sandbox's traffic, at noon of the second day of 2026.
    pub(crate) fn new() -> Result<Self> {
        let known = SandboxOptions::default().seed(7);
        let machine = Machine::new(MachineOptions::default().cluster_endpoint(ADDRESS.to_owned()).client_id(known.client_id.clone()).client_secret(known.client_secret.clone()).control_audience(known.control_audience.clone()))?;
        let now = Now {
            monotonic_ms: 0,
            unix_ms: 1_767_355_200_000,
        };
        let sandbox = Sandbox::new(known)?;
        Ok(Self {
            machine,
            now,
            sandbox,
        })
    }

    /// Drives a call until it is done.
    pub(crate) fn drive<T>(&mut self, call: &mut Call<T>) -> Result<()> {
        loop {
            match call.step(self.now)? {
                Step::Send(request) => {
                    let headers: Vec<(&str, &str)> = request.headers().collect();
                    let target = request.url().trim_start_matches(ADDRESS);
                    let body = request.body().unwrap_or_default();
                    let answer =
                        self.sandbox
                            .handle(request.method(), target, &headers, body, self.now);
                    let headers = answer.headers.iter();
                    let headers: Vec<(&str, &str)> =
                        headers.map(|(name, value)| (&**name, &**value)).collect();
                    if call.head(answer.status, &headers)? {
                        call.chunk(&answer.body)?;
                        call.end()?;
                    }
                }
                Step::Wait { ms } => self.wait(u64::from(ms)),
                Step::Done => return Ok(()),
                Step::ProvideToken { .. } | Step::Blocked { .. } => {
                    unreachable!("one call at a time, with a secret")
                }
            }
        }
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, ms: u64) {
        self.now.monotonic_ms += ms;
        self.now.unix_ms += ms as i64;
    }

    /// The counts by integration in the `index`-th quarter of an hour of 2026.
    pub(crate) fn quarter(&mut self, index: u32) -> Result<CountTable> {
        let edge = |index: u32| format!("2026-01-01T{:02}:{:02}:00Z", index / 4, index % 4 * 15);
        let window = Window::parse(&edge(index), &edge(index + 1))?;
        let query = QueryOptions::new(window, &[Dimension::Integration, Dimension::Reason]);
        let mut call = self.machine.event_delivery(&query)?;
        self.drive(&mut call)?;
        call.output()
    }
}
