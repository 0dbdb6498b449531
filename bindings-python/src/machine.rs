//! `Machine`: the client without I/O, and the calls that it begins.

use pyo3::prelude::*;
use tallyfold::arguments::{Options, Parameter, Value};
use tallyfold::{Api, CollectOptions, FollowOptions, MachineOptions, ProbeOptions};

use crate::arguments::{Named, Positional, instance, keywords, options};
use crate::call::Call;
use crate::error::Result;
use crate::host::random_seed;
use crate::ranges::{Collect, Follow, Probe};
use crate::table::CountTable;

const USER_AGENT: &str = concat!("tallyfold/", env!("CARGO_PKG_VERSION"), " python");

/// The base class of `Machine`, without the methods for endpoints.
#[pyclass(frozen, subclass, module = "tallyfold")]
pub(crate) struct MachineBase(tallyfold::Machine);

#[pymethods]
impl MachineBase {
    /// Makes the machine of a client. The client handles the options `others` itself.
    #[staticmethod]
    #[pyo3(signature = (others, **named))]
    fn _of_client(
        py: Python<'_>,
        others: Vec<String>,
        named: Option<Named<'_>>,
    ) -> Result<Py<Machine>> {
        let base = Self::of(py, named, &names(&others), Some(USER_AGENT))?;
        Ok(Py::new(py, with_calls(base))?)
    }

    /// The names of the arguments that a machine needs in addition to the `given` ones.
    #[staticmethod]
    fn _missing(given: Vec<String>, has_tokens: bool) -> Vec<&'static str> {
        tallyfold::MachineOptions::missing(&names(&given), has_tokens)
    }

    /// The identity, as a prefix for keys in a store that several clients share.
    fn _shared_identity(&self) -> Result<&str> {
        Ok(self.0.shared_identity()?)
    }

    /// How many requests of this client have failed temporarily, for `Call._fail_fast`.
    fn _failures(&self) -> u64 {
        self.0.failures()
    }

    /// A call for an access token of `"control"` or `"orchestration"`, whose output is the token and its remaining
    /// lifetime in seconds. The machine uses the same token itself, and fetches or renews it only when needed.
    ///
    /// Raises:
    ///     ConfigError: for arguments that can't be used.
    fn token(&self, api: &str) -> Result<Call> {
        let api = Api::from_value(Value::Text(api.to_owned()))
            .map_err(|error| error.with_argument("api"))?;
        Ok(Call::new(self.0.token(api)?.untyped()))
    }

    /// Begins to collect a long range. Your workers drive the `Collect` that it returns.
    ///
    /// The arguments are the same as for `Client.collect`, without `checkpoint`, `on_progress` and `progress`.
    ///
    /// Raises:
    ///     ConfigError: for arguments that can't be used.
    #[pyo3(signature = (*positional, **named))]
    fn collect(&self, positional: Positional<'_>, named: Option<Named<'_>>) -> Result<Collect> {
        self.collect_of(positional, named, &[])
    }

    /// Begins a collect of a client. The client handles the options `others` itself.
    #[pyo3(signature = (others, *positional, **named))]
    fn _collect_of_client(
        &self,
        others: Vec<String>,
        positional: Positional<'_>,
        named: Option<Named<'_>>,
    ) -> Result<Collect> {
        self.collect_of(positional, named, &names(&others))
    }

    /// Begins to follow windows as they close. Your program drives the `Follow` that it returns.
    ///
    /// The arguments are the same as for `Client.follow`.
    ///
    /// Raises:
    ///     ConfigError: for arguments that can't be used.
    #[pyo3(signature = (*positional, **named))]
    fn follow(&self, positional: Positional<'_>, named: Option<Named<'_>>) -> Result<Follow> {
        self.follow_of(positional, named, &[])
    }

    /// Begins a follow of a client. The client handles the options `others` itself.
    #[pyo3(signature = (others, *positional, **named))]
    fn _follow_of_client(
        &self,
        others: Vec<String>,
        positional: Positional<'_>,
        named: Option<Named<'_>>,
    ) -> Result<Follow> {
        self.follow_of(positional, named, &names(&others))
    }

    /// Begins to test whether the service's windows are half-open. Your program drives the `Probe` that
    /// it returns.
    ///
    /// The arguments are the same as for `Client.probe_additivity`.
    ///
    /// Raises:
    ///     ConfigError: for arguments that can't be used.
    #[pyo3(signature = (*positional, **named))]
    fn probe_additivity(
        &self,
        positional: Positional<'_>,
        named: Option<Named<'_>>,
    ) -> Result<Probe> {
        let options: ProbeOptions = options(5, positional, named, &[])?;
        Ok(Probe::new(self.0.probe_additivity(&options)?))
    }

    /// How many seconds one exchange may take, and how many seconds a call may wait for a token that
    /// another call fetches; `None` for no limit. Your program enforces this limit.
    #[getter]
    fn timeout(&self) -> Option<f64> {
        self.0.timeout().ms().map(|ms| ms as f64 / 1000.0)
    }

    /// A number that changes whenever a token fetch has ended. A `Blocked` call waits for this change.
    fn token_epoch(&self) -> u64 {
        self.0.token_epoch()
    }

    #[allow(clippy::unused_self, reason = "Python's protocol; the options hold a secret")]
    fn __repr__(&self) -> &'static str {
        "<Machine>"
    }
}

impl MachineBase {
    fn of(
        py: Python<'_>,
        named: Option<Named<'_>>,
        others: &[&str],
        user_agent: Option<&'static str>,
    ) -> Result<Self> {
        let options = keywords::<MachineOptions>(py, named, others)?
            .hash_seed(random_seed())
            .jitter_seed(random_seed())
            .user_agent(user_agent);
        Ok(Self(tallyfold::Machine::new(options)?))
    }

    fn follow_of(
        &self,
        positional: Positional<'_>,
        named: Option<Named<'_>>,
        others: &[&str],
    ) -> Result<Follow> {
        let options: FollowOptions = options(3, positional, named, others)?;
        Ok(Follow::new(self.0.follow(&options)?))
    }

    fn collect_of(
        &self,
        positional: Positional<'_>,
        named: Option<Named<'_>>,
        others: &[&str],
    ) -> Result<Collect> {
        let have = named.map(|named| named.get_item("have")).transpose()?;
        let have = have.flatten().filter(|have| !have.is_none());
        let have = have.map(|have| -> Result<_> {
            let table = instance::<CountTable>("have", "want a CountTable", &have)?;
            Ok(table.get().core().clone())
        });
        let others: Vec<&str> = others.iter().copied().chain(["have"]).collect();
        let options = options::<CollectOptions>(4, positional, named, &others)?;
        let options = options.have(have.transpose()?);
        Ok(Collect::new(self.0.collect(options)?))
    }
}

/// A client without I/O: it creates the requests, and your program sends them and passes the responses back.
///
/// `Client` and `AsyncClient` each drive a machine; you can also drive one with any other HTTP
/// stack. All threads and calls of a program may share one machine and its tokens (service
/// reference 5). A machine has the arguments of `Client`, except `access_token`, `transport`, `on_attempt`,
/// `ca`, `proxy` and `trust_env`. It has three more arguments. With `host_tokens`, your program answers
/// `ProvideToken` steps instead of passing a secret. Set `in_browser` if the program runs in a page, as
/// with Pyodide, where visitors can read everything in memory; the machine then refuses a secret, unless
/// `dangerously_allow_browser` is set.
///
/// Raises:
///     ConfigError: for arguments that can't be used.
///
/// >>> machine = tallyfold.Machine(cluster_endpoint="https://cluster.example", host_tokens=True)
/// >>> call = machine.event_delivery(
/// ...     "2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z", ["integration"]
/// ... )
/// >>> call.step(tallyfold.Now.read())
/// ProvideToken(api='control')
/// >>> call.token("a-token-from-elsewhere", 3600)
/// >>> call.step(tallyfold.Now.read())
/// Send(request=<Request POST https://cluster.example/v1.1/analytics/event_delivery>)
#[pyclass(frozen, extends = MachineBase, module = "tallyfold")]
pub(crate) struct Machine;

/// Generates the methods that begin calls: one for each endpoint.
macro_rules! calls {
    ($($(#[$doc:meta])* $Target:ident = $name:literal in $method:ident: $Options:ident -> $Output:ident,)+) => {
        #[pymethods]
        impl Machine {
            #[new]
            #[pyo3(signature = (**named))]
            fn new(py: Python<'_>, named: Option<Named<'_>>) -> Result<PyClassInitializer<Self>> {
                Ok(with_calls(MachineBase::of(py, named, &[], None)?))
            }

            $(
            /// A call to an endpoint:
            $(#[$doc])*
            ///
            /// The arguments are the same as for the method of `Client`.
            ///
            /// Raises:
            ///     ConfigError: for arguments that can't be used.
            #[pyo3(signature = (*positional, **named))]
            fn $method(
                slf: PyRef<'_, Self>,
                positional: Positional<'_>,
                named: Option<Named<'_>>,
            ) -> Result<Call> {
                // All arguments except the deadline, which is the last one, may be positional.
                let most = tallyfold::$Options::ARGUMENTS.len() - 1;
                let query: tallyfold::$Options = options(most, positional, named, &[])?;
                Ok(Call::new(slf.as_super().0.$method(&query)?.untyped()))
            }
            )+
        }
    };
}
tallyfold::each_endpoint!(calls);

fn with_calls(base: MachineBase) -> PyClassInitializer<Machine> {
    PyClassInitializer::from(base).add_subclass(Machine)
}

fn names(others: &[String]) -> Vec<&str> {
    others.iter().map(String::as_str).collect()
}
