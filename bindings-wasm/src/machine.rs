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

/// The caller's side of both APIs.
#[wasm_bindgen(js_name = CoreMachine)]
pub struct Machine {
    core: tallyfold::Machine,
    /// Names in every query that are the driver's.
    others: Vec<String>,
    /// Those in the query of a collect.
    others_of_collect: Vec<String>,
    /// Those in the query of a follow.
    others_of_follow: Vec<String>,
}

#[wasm_bindgen(js_class = CoreMachine)]
impl Machine {
    /// With the facade's options, and the names that the facade reads by itself: in every query, in that of a
    /// collect, and in that of a follow.
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
            // Only a client handles options itself.
            .user_agent((!others.is_empty()).then_some(USER_AGENT));
        let core = tallyfold::Machine::new(options)?;
        Ok(Self {
            core,
            others,
            others_of_collect,
            others_of_follow,
        })
    }

    /// The options that a machine needs in addition to the given ones; all by their names in Rust.
    pub fn missing(given: Vec<String>, has_tokens: bool) -> Returned {
        let given: Vec<&str> = given.iter().map(String::as_str).collect();
        Ok(plain(&MachineOptions::missing(&given, has_tokens)))
    }

    /// How many milliseconds an exchange may take; infinite if there is no end.
    #[wasm_bindgen(js_name = timeoutMs)]
    pub fn timeout_ms(&self) -> f64 {
        match self.core.timeout() {
            Patience::Milliseconds(ms) => ms as f64,
            Patience::Endless => f64::INFINITY,
        }
    }

    /// The beginning of keys in a store that several clients share.
    #[wasm_bindgen(js_name = sharedIdentity)]
    pub fn shared_identity(&self) -> Result<String, Thrown> {
        Ok(self.core.shared_identity()?.to_owned())
    }

    /// An access token of an API.
    pub fn token(&self, api: &JsValue) -> Result<Call, Thrown> {
        Ok(Call(self.core.token(required("api", api)?)?.untyped()))
    }

    /// A long range. A table may hold a part of it already.
    pub fn collect(&self, query: &JsValue, have: Option<CountTable>) -> Result<Collect, Thrown> {
        let options: tallyfold::CollectOptions = read(query, &self.others_of_collect)?;
        let options = options.have(have.map(|table| table.0));
        Ok(Collect(self.core.collect(options)?))
    }

    /// Windows as they close.
    pub fn follow(&self, query: &JsValue) -> Result<Follow, Thrown> {
        let options = read(query, &self.others_of_follow)?;
        Ok(Follow(self.core.follow(&options)?))
    }

    /// Whether the windows between three timestamps add up.
    #[wasm_bindgen(js_name = probeAdditivity)]
    pub fn probe_additivity(&self, query: &JsValue) -> Result<Probe, Thrown> {
        let options = read(query, &self.others)?;
        Ok(Probe(self.core.probe_additivity(&options)?))
    }

    /// How many requests have failed temporarily.
    pub fn failures(&self) -> u64 {
        self.core.failures()
    }

    /// Grows with every change of a token.
    #[wasm_bindgen(js_name = tokenEpoch)]
    pub fn token_epoch(&self) -> u64 {
        self.core.token_epoch()
    }
}

/// Generates what begins the calls of all endpoints.
macro_rules! calls {
    ($($(#[$doc:meta])* $Target:ident = $name:literal in $method:ident: $Options:ident -> $Output:ident,)+) => {
        #[wasm_bindgen(js_class = CoreMachine)]
        impl Machine {
            /// A call to the endpoint of that name.
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
