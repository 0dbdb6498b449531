//! Connects a machine and a sandbox in one process through bytes, in virtual time.

use tallyfold::{Call, CallOutput, Machine, MachineOptions, Now, Request, Result, Step};
use tallyfold_sandbox::{Sandbox, SandboxOptions};

/// Where the sandbox would be, if there were a network.
pub(crate) const ADDRESS: &str = "https://sandbox.example";

/// 2026-01-01T00:00:00Z.
pub(crate) const NEW_YEAR_MS: i64 = 1_767_225_600_000;

/// Both clocks, `seconds` after the new year.
pub(crate) fn at(seconds: u64) -> Now {
    Now { monotonic_ms: seconds * 1000, unix_ms: NEW_YEAR_MS + seconds as i64 * 1000 }
}

/// A sandbox with seeded traffic and the demo credentials.
pub(crate) fn sandbox() -> Sandbox {
    Sandbox::new(SandboxOptions::default().seed(7)).expect("the demo options are good")
}

/// The options of a client of [`sandbox`].
pub(crate) fn options() -> MachineOptions {
    let demo = SandboxOptions::default();
    MachineOptions::default()
        .cluster_endpoint(ADDRESS)
        .base_url(ADDRESS)
        .auth_url(ADDRESS)
        .client_id(demo.client_id)
        .client_secret(demo.client_secret)
        .control_audience(demo.control_audience)
        .orchestration_audience(demo.orchestration_audience)
}

/// A client of [`sandbox`].
pub(crate) fn client() -> Machine {
    Machine::new(options()).expect("the demo options are good")
}

/// A client of [`sandbox`] that retries nothing.
pub(crate) fn client_of_one_try() -> Machine {
    let options = options().max_retries(0);
    Machine::new(options).expect("good options")
}

/// Both clocks, `milliseconds` later.
pub(crate) fn after(now: Now, milliseconds: u64) -> Now {
    Now {
        monotonic_ms: now.monotonic_ms + milliseconds,
        unix_ms: now.unix_ms + milliseconds as i64,
    }
}

/// Sends one request, and passes the response to the call. A body that the sandbox cuts is
/// truncated.
pub(crate) fn exchange<T>(
    call: &mut Call<T>,
    request: &Request,
    sandbox: &mut Sandbox,
    now: Now,
) -> Result<()> {
    let target = request.url().strip_prefix(ADDRESS).expect("the sandbox's address");
    let headers: Vec<(&str, &str)> = request.headers().collect();
    let body = request.body().unwrap_or_default();
    let response = sandbox.handle(request.method(), target, &headers, body, now);
    let headers: Vec<(&str, &str)> =
        response.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    if call.head(response.status, &headers)? {
        let end = response.cut_at.map_or(response.body.len(), |at| at as usize);
        for chunk in response.body[..end].chunks(1024) {
            call.chunk(chunk)?;
        }
        call.end()?;
    }
    Ok(())
}

/// Drives one call to its end. Time passes only while the call waits.
pub(crate) fn drive<T: CallOutput>(
    mut call: Call<T>,
    sandbox: &mut Sandbox,
    mut now: Now,
) -> Result<T> {
    loop {
        match call.step(now)? {
            Step::Send(request) => exchange(&mut call, &request, sandbox, now)?,
            Step::Wait { ms } => now = after(now, ms.into()),
            Step::Done => return call.output(),
            other => panic!("one call alone is never told {other:?}"),
        }
    }
}
