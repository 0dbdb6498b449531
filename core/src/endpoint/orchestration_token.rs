//! Obtain an Orchestration API token (service reference 4.1).

use serde::Serialize;

use super::token_response::request_body;
use crate::secret::Secret;
use crate::wire::address::BaseAddress;
use crate::wire::request::Request;

const PATH: &str = "/oauth/token";

#[derive(Serialize)]
struct Fields<'a> {
    grant_type: &'static str,
    client_id: &'a str,
    client_secret: &'a str,
    audience: &'a str,
}

/// `POST {auth_url}/oauth/token`.
pub(crate) fn request(
    auth_url: &BaseAddress,
    client_id: &str,
    client_secret: &Secret,
    audience: &str,
) -> Request {
    let fields = Fields {
        grant_type: "client_credentials",
        client_id,
        client_secret: client_secret.expose(),
        audience,
    };
    Request::post_json(auth_url.join(PATH), request_body(&fields))
}
