//! The options of a sandbox.

use tallyfold::{Code, Error, Result, Secret};

use crate::scene::Scene;

/// The two APIs. Each has its own audience (service reference 5.1).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Control,
    Orchestration,
}

tallyfold::options! {
    /// The options of a sandbox. The default has the demo credentials and no seeded traffic.
    #[derive(Clone, Debug)]
    pub struct SandboxOptions: Default {
        /// The seed of realistic generated traffic: the same seed generates the same counts.
        ///
        /// By default, no traffic is generated.
        seed: Option<u64> = None,
        /// An incident in the generated traffic, during the hours before the first request.
        ///
        /// Without a seed, the seed is 1.
        scene: Option<Scene> = None,
        /// The client id that both token endpoints accept.
        client_id: String = "sandbox-client".to_owned(),
        /// The client secret.
        ///
        /// The default is public and is valid only for a sandbox.
        client_secret: Secret = Secret::from("sandbox-secret".to_owned()),
        /// The audience identifier of the Control API.
        control_audience: String = "sandbox-control".to_owned(),
        /// The audience identifier of the Orchestration API.
        ///
        /// It must differ from the other one, because a token has one audience.
        orchestration_audience: String = "sandbox-orchestration".to_owned(),
        /// How long a token is valid.
        token_lifetime_s: u64 = 86_400,
        /// Whether an event at the `end` of a window also counts in it.
        ///
        /// Then the assumption `half_open_window` is false, and adjacent windows count some events twice.
        closed_windows: bool = false,
    }
}

impl SandboxOptions {
    pub(crate) fn check(&self) -> Result<()> {
        let texts = [
            ("client_id", self.client_id.as_str()),
            ("client_secret", self.client_secret.expose()),
            ("control_audience", &self.control_audience),
            ("orchestration_audience", &self.orchestration_audience),
        ];
        let refused = |name, message| Err(Error::argument(name, Code::InvalidArgument, message));
        if let Some((name, _)) = texts.into_iter().find(|(_, text)| text.is_empty()) {
            return refused(name, "want a text that is not empty");
        }
        if self.control_audience == self.orchestration_audience {
            let message = "want a different audience than that of the Control API";
            return refused("orchestration_audience", message);
        }
        if self.token_lifetime_s == 0 {
            return refused("token_lifetime_s", "want a number of seconds from 1");
        }
        Ok(())
    }

    pub(crate) fn audience(&self, api: Api) -> &str {
        match api {
            Api::Control => &self.control_audience,
            Api::Orchestration => &self.orchestration_audience,
        }
    }
}
