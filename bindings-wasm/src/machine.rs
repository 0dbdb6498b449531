//! [`tallyfold::Machine`].

use tallyfold::arguments::Options;
use tallyfold::{MachineOptions, Patience};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::arguments::{options, required};
use crate::call::Call;
use crate::error::{Returned, Thrown};
use crate::host::random_seed;
use crate::plain::plain;
use crate::ranges::{Collect, Follow, Probe};
use crate::table::CountTable;

const USER_AGENT: &str = concat!("tallyfold/", env!("CARGO_PKG_VERSION"), " javascript");

/// A client of both APIs, without I/O.
#[wasm_bindgen(js_name = CoreMachine)]
pub struct Machine {
    core: tallyfold::Machine,
    /// The names of the options that the driver reads from every query.
    others: Vec<String>,
    /// The names of the options that the driver reads from the query of a collect.
    others_of_collect: Vec<String>,
    /// The names of the options that the driver reads from the query of a follow.
    others_of_follow: Vec<String>,
}

#[wasm_bindgen(js_class = CoreMachine)]
impl Machine {
    /// Makes a machine with the facade's options. The lists are the names of the options that the facade itself reads from
    /// every query, from the query of a collect, and from the query of a follow.
    #[wasm_bindgen(constructor)]
    pub fn new(
        given: &JsValue,
        others: Vec<String>,
        others_of_collect: Vec<String>,
        others_of_follow: Vec<String>,
    ) -> Result<Self, Thrown> {
        let options = options::<MachineOptions>("options", given, &[])?
            .hash_seed(random_seed())
            .jitter_seed(random_seed())
            // Only a client reads options itself. A machine that is driven by another program sends no such user agent.
            .user_agent((!others.is_empty()).then_some(USER_AGENT));
        let core = tallyfold::Machine::new(options)?;
        Ok(Self { core, others, others_of_collect, others_of_follow })
    }

    /// The options that a machine needs in addition to the given options. All names are the names in Rust.
    pub fn missing(given: Vec<String>, has_tokens: bool) -> Returned {
        let given: Vec<&str> = given.iter().map(String::as_str).collect();
        Ok(plain(&MachineOptions::missing(&given, has_tokens)))
    }

    /// How many milliseconds an exchange may take; infinite if there is no limit.
    #[wasm_bindgen(js_name = timeoutMs)]
    pub fn timeout_ms(&self) -> f64 {
        match self.core.timeout() {
            Patience::Milliseconds(ms) => ms as f64,
            Patience::Endless => f64::INFINITY,
        }
    }

    /// The beginning of this client's keys in a store that several clients share.
    #[wasm_bindgen(js_name = sharedIdentity)]
    pub fn shared_identity(&self) -> Result<String, Thrown> {
        Ok(self.core.shared_identity()?.to_owned())
    }

    /// Begins a call for an access token of an API.
    pub fn token(&self, api: &JsValue) -> Result<Call, Thrown> {
        Ok(Call(self.core.token(required("api", api)?)?.untyped()))
    }

    /// Begins to collect a long range. The table `have` may already cover a part of it.
    pub fn collect(&self, query: &JsValue, have: Option<CountTable>) -> Result<Collect, Thrown> {
        let options: tallyfold::CollectOptions = read(query, &self.others_of_collect)?;
        let options = options.have(have.map(|table| table.0));
        Ok(Collect(self.core.collect(options)?))
    }

    /// Begins to follow windows as they close.
    pub fn follow(&self, query: &JsValue) -> Result<Follow, Thrown> {
        let options = read(query, &self.others_of_follow)?;
        Ok(Follow(self.core.follow(&options)?))
    }

    /// Begins to test whether the windows between three timestamps add up.
    #[wasm_bindgen(js_name = probeAdditivity)]
    pub fn probe_additivity(&self, query: &JsValue) -> Result<Probe, Thrown> {
        let options = read(query, &self.others)?;
        Ok(Probe(self.core.probe_additivity(&options)?))
    }

    /// How many requests have failed temporarily.
    pub fn failures(&self) -> u64 {
        self.core.failures()
    }

    /// A number that grows whenever a token fetch has ended.
    #[wasm_bindgen(js_name = tokenEpoch)]
    pub fn token_epoch(&self) -> u64 {
        self.core.token_epoch()
    }
}

/// Generates the method that begins a call to any endpoint.
macro_rules! calls {
    ($($(#[$doc:meta])* $Target:ident = $name:literal in $method:ident: $Options:ident -> $Output:ident,)+) => {
        #[wasm_bindgen(js_class = CoreMachine)]
        impl Machine {
            /// Begins a call to the endpoint with this name.
            pub fn call(&self, endpoint: &str, query: &JsValue) -> Result<Call, Thrown> {
                match endpoint {
                    $( $name => Ok(Call(self.core.$method(&read(query, &self.others)?)?.untyped())), )+
                    _ => Err(Thrown::missing("endpoint")),
                }
            }
        }
    };
}
tallyfold::each_endpoint!(calls);

fn read<T: Options>(query: &JsValue, others: &[String]) -> Result<T, Thrown> {
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    options("query", query, &others)
}
