//! What can go wrong: a closed list of codes, each of one kind.

use std::fmt;

use serde::{Serialize, Serializer};

/// Who has to act on an error. Each host maps every kind to an exception or an exit code, so a new kind breaks the
/// build of each host, on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The caller's arguments or order of calls; in most cases, nothing was sent.
    Config,
    /// The credentials or the tokens.
    Auth,
    /// The service or the way to it: statuses, redirects, the network.
    Service,
    /// Data that is not a valid result, such as a response or a saved table, or could not be processed.
    Response,
}

impl Kind {
    /// The kind's name in every language.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Auth => "auth",
            Self::Service => "service",
            Self::Response => "response",
        }
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident $name:literal $kind:ident),+ $(,)?) => {
        /// What went wrong: a closed list, the same in every language.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
        #[non_exhaustive]
        pub enum Code { $(
            $(#[$doc])*
            #[cfg_attr(feature = "surface", schemars(rename = $name))]
            $variant
        ),+ }

        impl Code {
            /// Every code, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The code's name in every language.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// The code with that name, if there is one.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|code| code.as_str() == name)
            }

            /// The kind that the code belongs to.
            #[must_use]
            pub const fn kind(self) -> Kind {
                match self { $(Self::$variant => Kind::$kind),+ }
            }
        }
    };
}

codes! {
    /// A required argument was not given.
    MissingArgument "missing_argument" Config,
    /// An argument with a name that does not exist.
    UnknownArgument "unknown_argument" Config,
    /// An argument has a value that can't be used.
    InvalidArgument "invalid_argument" Config,
    /// A base address is not an absolute http(s) address, or has user info, a query or a fragment.
    InvalidBaseAddress "invalid_base_address" Config,
    /// A base address is plain http and points to another machine.
    InsecureBaseAddress "insecure_base_address" Config,
    /// A client secret was given in a browser, where every visitor could read it.
    SecretInBrowser "secret_in_browser" Config,
    /// The page or the process does not allow WebAssembly to be compiled. Only JavaScript can report it.
    WasmForbidden "wasm_forbidden" Config,
    /// A timestamp is not a date and time with `Z` or an offset from UTC.
    InvalidTimestamp "invalid_timestamp" Config,
    /// A window does not start before it ends.
    InvalidWindow "invalid_window" Config,
    /// A dimension that the service does not know, or that the endpoint or table does not have.
    UnknownDimension "unknown_dimension" Config,
    /// The same dimension twice.
    RepeatedDimension "repeated_dimension" Config,
    /// No dimension at all.
    NoDimensions "no_dimensions" Config,
    /// `page` or `per_page` below 1.
    InvalidPage "invalid_page" Config,
    /// Two tables cover the same time.
    OverlappingCoverage "overlapping_coverage" Config,
    /// A window crosses the edge of a step or range, and its counts can't be split.
    UnalignedWindow "unaligned_window" Config,
    /// Two tables differ in their dimensions, metric, filter, cluster or client.
    IncompatibleTables "incompatible_tables" Config,
    /// A checkpoint that is incomplete, was changed, belongs to another query, has counts from the future, or is in use.
    InvalidCheckpoint "invalid_checkpoint" Config,
    /// The counts that a collect keeps take more memory than allowed. To save memory, set `keep`, which adds windows up.
    MemoryLimit "memory_limit" Config,
    /// A rules file that isn't TOML, or that has an invalid key or value.
    InvalidRules "invalid_rules" Config,
    /// The format can't represent what is exported.
    UnsupportedByFormat "unsupported_by_format" Config,
    /// Methods were called in the wrong order, during another call, or after the end. Or an outbox or ledger did not get every revision
    /// of a follow, one after the other.
    OutOfOrder "out_of_order" Config,

    /// A token endpoint refused the credentials.
    TokenRefused "token_refused" Auth,
    /// A token endpoint's response can't be used.
    InvalidTokenResponse "invalid_token_response" Auth,
    /// A token's lifetime is not a positive whole number of seconds.
    InvalidTokenLifetime "invalid_token_lifetime" Auth,
    /// The service answered 401, even to tokens that had just been fetched.
    TokenRejected "token_rejected" Auth,
    /// The caller's own source of tokens failed.
    TokenProviderFailed "token_provider_failed" Auth,

    /// A redirect (3xx); tallyfold follows none.
    Redirected "redirected" Service,
    /// Status 403; for the destination of a push, also 401.
    Forbidden "forbidden" Service,
    /// Status 429.
    RateLimited "rate_limited" Service,
    /// The service requests a longer wait than the caller allows.
    RetryLater "retry_later" Service,
    /// Status 5xx.
    ServerError "server_error" Service,
    /// A status that no other code stands for; for the destination of a push, also a success without the header that confirms it.
    UnexpectedStatus "unexpected_status" Service,
    /// The HTTP client could not complete the exchange.
    NetworkFailed "network_failed" Service,
    /// The exchange took longer than the client's timeout.
    TimedOut "timed_out" Service,
    /// The call, including its retries and waits, took longer than its deadline.
    DeadlineExceeded "deadline_exceeded" Service,

    /// The response has a content type other than JSON.
    WrongContentType "wrong_content_type" Response,
    /// The response uses a content encoding that was not requested, or is compressed more than once.
    WrongContentEncoding "wrong_content_encoding" Response,
    /// The body is an HTML page instead of JSON.
    HtmlResponse "html_response" Response,
    /// No bytes at all, or only white space.
    EmptyBody "empty_body" Response,
    /// The body ended before its JSON did.
    TruncatedBody "truncated_body" Response,
    /// The body is not JSON.
    InvalidJson "invalid_json" Response,
    /// A string is not UTF-8. (Such a byte outside of a string is `invalid_json`.)
    InvalidUtf8 "invalid_utf8" Response,
    /// An escape for one half of a surrogate pair without the other half.
    LoneSurrogate "lone_surrogate" Response,
    /// A byte order mark before the JSON.
    ByteOrderMark "byte_order_mark" Response,
    /// Bytes after the JSON.
    TrailingBytes "trailing_bytes" Response,
    /// The same key twice in one object.
    DuplicateKey "duplicate_key" Response,
    /// A required field is missing.
    MissingField "missing_field" Response,
    /// A value of the wrong JSON type.
    WrongType "wrong_type" Response,
    /// A count that is not a string of ASCII digits.
    InvalidCount "invalid_count" Response,
    /// A count above 2^64 - 1, or a count or change that is too large for a column's number type.
    CountOverflow "count_overflow" Response,
    /// A count above 2^53, for a target that stores 64-bit floats.
    InexactCount "inexact_count" Response,
    /// A sum of counts above 2^64 - 1.
    SumOverflow "sum_overflow" Response,
    /// The response is for a window other than the one requested.
    WindowMismatch "window_mismatch" Response,
    /// An entry's dimensions are not exactly the requested ones.
    DimensionMismatch "dimension_mismatch" Response,
    /// The same combination of dimension values twice.
    RepeatedCombination "repeated_combination" Response,
    /// Nested deeper than the limit.
    DepthLimit "depth_limit" Response,
    /// A string longer than the limit.
    StringLimit "string_limit" Response,
    /// More keys in one object than the limit.
    KeyLimit "key_limit" Response,
    /// A body longer than the limit.
    BodyLimit "body_limit" Response,
    /// More groups than the limit.
    GroupLimit "group_limit" Response,
    /// There is not enough memory for what was read.
    OutOfMemory "out_of_memory" Response,
    /// The core crashed during a call: a bug in tallyfold. Only JavaScript can report it.
    Crashed "crashed" Response,
    /// A saved table that this version can't read, or that was changed after it was written.
    InvalidTable "invalid_table" Response,
    /// Counts of adjacent windows do not add up to the counts of the whole range.
    WindowsNotAdditive "windows_not_additive" Response,
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
