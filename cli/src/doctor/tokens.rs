//! Whether each API gives a token for its audience.

use std::time::Duration;

use tallyfold::{Api, Code, Error, Output};

use super::check::{Check, CheckName, Outcome};
use super::configuration::Prepared;
use super::look::{Seen, failed, look};
use super::words::length;

/// Asks for a token of an API.
pub(crate) async fn check(prepared: &Prepared, api: Api) -> Check {
    let session = &prepared.session;
    let name = name(api);
    let mut call = match session.machine.token(api) {
        Ok(call) => call,
        Err(error) => return failed(name, &error, &Seen::default()),
    };
    let (ended, seen) = look(session, &mut call, prepared.limit).await;
    match ended.and_then(|()| call.output()) {
        Ok(Output::Token { expires_in_s, .. }) => {
            // A part of the last second has passed on the way.
            let minutes = u64::from(expires_in_s).div_ceil(60);
            let lifetime = length(Duration::from_secs(minutes * 60));
            Check::ok(name, format!("granted, valid for {lifetime}")).took(seen.took)
        }
        // A call for a token gives one.
        Ok(_) => failed(name, &no_token(), &seen),
        Err(error) => failed(name, &error, &seen),
    }
}

fn no_token() -> Error {
    Error::new(Code::InvalidTokenResponse, "the answer has no token")
}

/// The check of the token of an API.
pub(crate) fn name(api: Api) -> CheckName {
    match api {
        Api::Control => CheckName::ControlToken,
        Api::Orchestration => CheckName::OrchestrationToken,
    }
}

/// What is known better when both tokens were asked for. The service does not say whether it refuses the id, the
/// secret or the audience, but both APIs take the same id and secret (service reference 5.1, point 5).
pub(crate) fn compare(checks: &mut [Check]) {
    let of = |api| checks.iter().position(|check| check.name == name(api));
    let (Some(control), Some(orchestration)) = (of(Api::Control), of(Api::Orchestration)) else {
        return;
    };
    let is_refused = |at: usize| checks[at].code == Some(Code::TokenRefused);
    let is_granted = |at: usize| checks[at].result == Outcome::Ok;
    let audience = |flag: &str| {
        format!(
            "Check {flag} first: the other API has granted a token for the same id and secret, so the audience is what differs. \
             If it is right, ask the operator whether this id may use this API."
        )
    };
    if is_refused(control) && is_granted(orchestration) {
        checks[control].next = Some(audience("--control-audience"));
    } else if is_refused(orchestration) && is_granted(control) {
        checks[orchestration].next = Some(audience("--orchestration-audience"));
    } else if is_refused(control) && is_refused(orchestration) {
        let next = "Check the client id and the client secret first: both APIs refuse them. Then check both audiences.";
        checks[control].next = Some(next.to_owned());
        checks[orchestration].next = Some(next.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advised(control: bool, orchestration: bool) -> [Option<String>; 2] {
        let check = |api, is_granted| match is_granted {
            true => Check::ok(name(api), ""),
            false => {
                let error = Error::new(Code::TokenRefused, "refused").with_status(401);
                failed(name(api), &error, &Seen::default())
            }
        };
        let mut checks = [
            check(Api::Control, control),
            check(Api::Orchestration, orchestration),
        ];
        compare(&mut checks);
        checks.map(|check| check.next)
    }

    #[test]
    fn a_token_that_only_one_api_refuses_points_at_its_audience() {
        let [control, orchestration] = advised(false, true);
        assert!(control.unwrap().contains("--control-audience first"));
        assert_eq!(orchestration, None);
        let [control, orchestration] = advised(true, false);
        assert!(
            orchestration
                .unwrap()
                .contains("--orchestration-audience first")
        );
        assert_eq!(control, None);
    }

    #[test]
    fn tokens_that_both_apis_refuse_point_at_the_secret() {
        for next in advised(false, false) {
            assert!(next.unwrap().contains("client secret first"));
        }
        assert_eq!(advised(true, true), [None, None]);
    }

    #[test]
    fn one_token_alone_is_not_compared() {
        let error = Error::new(Code::TokenRefused, "refused");
        let mut checks = [failed(CheckName::ControlToken, &error, &Seen::default())];
        compare(&mut checks);
        assert!(
            checks[0]
                .next
                .as_ref()
                .unwrap()
                .contains("does not say which")
        );
    }
}
