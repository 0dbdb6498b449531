//! Obtain a Control API token (service reference 4.3).

use serde::Serialize;

use super::token_response::request_body;
use crate::secret::Secret;
use crate::wire::address::BaseAddress;
use crate::wire::request::Request;

const PATH: &str = "/v1.1/oauth/token";

#[derive(Serialize)]
struct Fields<'a> {
    client_id: &'a str,
    client_secret: &'a str,
    audience: &'a str,
}

/// `POST {cluster_endpoint}/v1.1/oauth/token`; the reference shows no `grant_type` here.
pub(crate) fn request(
    cluster_endpoint: &BaseAddress,
    client_id: &str,
    client_secret: &Secret,
    audience: &str,
) -> Request {
    let fields = Fields { client_id, client_secret: client_secret.expose(), audience };
    Request::post_json(cluster_endpoint.join(PATH), request_body(&fields))
}
