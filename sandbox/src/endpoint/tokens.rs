//! The token endpoints (service reference 4.1 and 4.3), and the check of access tokens.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::{Deserialize, Deserializer, Serialize};
use tallyfold::{Now, Secret};

use crate::mix::mix;
use crate::options::{Api, SandboxOptions};
use crate::response::SandboxResponse;

/// The tokens that were issued. This has no `Debug`, so that no token is printed.
#[derive(Default)]
pub(crate) struct Tokens {
    live: HashMap<String, Token>,
    minted: u64,
}

struct Token {
    api: Api,
    minted_at: Now,
}

/// Assumption `strict_requests`: a field that the reference does not list is refused.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenRequest<'a> {
    #[serde(borrow)]
    grant_type: Option<Cow<'a, str>>,
    client_id: Cow<'a, str>,
    #[serde(deserialize_with = "secret")]
    client_secret: Secret,
    audience: Cow<'a, str>,
}

fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
    String::deserialize(deserializer).map(Secret::from)
}

#[derive(Serialize)]
struct TokenResponse<'a> {
    access_token: &'a str,
    expires_in: u64,
    token_type: &'static str,
}

impl Tokens {
    /// Responds to a token request. Messages never repeat the body, because it contains a secret.
    pub(crate) fn mint(
        &mut self,
        api: Api,
        body: &[u8],
        options: &SandboxOptions,
        now: Now,
    ) -> SandboxResponse {
        let Ok(request) = serde_json::from_slice::<TokenRequest<'_>>(body) else {
            let message = "want a JSON object of client_id, client_secret and audience, and of \
                           grant_type at /oauth/token only";
            return SandboxResponse::refusal(400, "invalid_request", message);
        };
        let grant_type_fits = match api {
            Api::Control => request.grant_type.is_none(),
            Api::Orchestration => request.grant_type.as_deref() == Some("client_credentials"),
        };
        if !grant_type_fits {
            let message = "grant_type is client_credentials at /oauth/token and absent at \
                           /v1.1/oauth/token";
            return SandboxResponse::refusal(400, "invalid_grant_type", message);
        }
        // Assumption `token_refusal_status`: the status is 401, whichever of the three is wrong.
        let issued = request.client_id == options.client_id
            && request.client_secret.expose() == options.client_secret.expose()
            && request.audience == options.audience(api);
        if !issued {
            let message = "client_id, client_secret or audience is not the one issued";
            return SandboxResponse::refusal(401, "invalid_client", message);
        }
        let expires_in = options.token_lifetime_s;
        let access_token = &self.issue(api, options, now);
        SandboxResponse::json(
            200,
            &TokenResponse { access_token, expires_in, token_type: "Bearer" },
        )
    }

    /// Creates a token. It can be guessed, because a sandbox protects nothing and has no source of randomness. It depends
    /// on the client id, the audience and the seed, so that tokens of different sandboxes differ, but not on the secret.
    fn issue(&mut self, api: Api, options: &SandboxOptions, now: Now) -> String {
        self.live.retain(|_, token| token.lives(now, options.token_lifetime_s));
        self.minted += 1;
        let name = match api {
            Api::Control => "control",
            Api::Orchestration => "orchestration",
        };
        let known = options.client_id.bytes().chain(options.audience(api).bytes());
        let start = mix(options.seed.unwrap_or(0) ^ self.minted);
        let hash = known.fold(start, |hash, byte| mix(hash ^ u64::from(byte)));
        let text = format!("sandbox.{name}.{}.{hash:016x}", self.minted);
        self.live.insert(text.clone(), Token { api, minted_at: now });
        text
    }

    /// Whether the header contains a valid token of this API (service reference 5.1 and 5.2).
    pub(crate) fn admit(
        &self,
        api: Api,
        authorization: Option<&str>,
        now: Now,
        lifetime_s: u64,
    ) -> bool {
        authorization
            .and_then(|value| value.strip_prefix("Bearer "))
            .and_then(|text| self.live.get(text))
            .is_some_and(|token| token.api == api && token.lives(now, lifetime_s))
    }

    pub(crate) fn revoke(&mut self) {
        self.live.clear();
    }
}

impl Token {
    fn lives(&self, now: Now, lifetime_s: u64) -> bool {
        now.since(self.minted_at) / 1000 < lifetime_s
    }
}
