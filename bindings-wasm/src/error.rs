//! The one place where an error crosses into JavaScript.

use std::cell::RefCell;

use js_sys::Function;
use tallyfold::{Code, Error, Kind};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::convert::object;

thread_local! {
    static FACTORY: RefCell<Option<Function>> = const { RefCell::new(None) };
}

/// Sets how errors are made: a function that takes an error's fields and returns the error.
#[wasm_bindgen(js_name = setErrorFactory)]
pub fn set_error_factory(factory: Function) {
    FACTORY.set(Some(factory));
}

/// What a binding returns.
pub(crate) type Result<T> = std::result::Result<T, Thrown>;

/// An error as JavaScript sees it.
pub struct Thrown(JsValue);

impl Thrown {
    /// An argument of a type that the core can't be handed.
    pub(crate) fn refused(argument: &str, want: &str) -> Self {
        Self::argument(Code::InvalidArgument, argument, want)
    }

    /// An argument without which there is nothing to hand to the core.
    pub(crate) fn missing(argument: &str) -> Self {
        Self::argument(Code::MissingArgument, argument, "required")
    }

    /// Whatever the caller's own code threw while it was asked for an argument.
    pub(crate) fn foreign(thrown: JsValue) -> Self {
        Self(thrown)
    }

    fn argument(code: Code, argument: &str, message: &str) -> Self {
        Self(made([
            ("code", code.as_str().into()),
            ("kind", code.kind().as_str().into()),
            ("message", format!("{code}: {argument}: {message}").into()),
            ("argument", argument.into()),
        ]))
    }
}

impl From<Error> for Thrown {
    fn from(error: Error) -> Self {
        let argument = error.argument_name();
        Self(made([
            ("code", error.code().as_str().into()),
            ("kind", error.kind().as_str().into()),
            ("message", message(&error).into()),
            ("argument", argument.map(name).into()),
            ("status", error.status().into()),
            ("path", error.path().into()),
            // Below 2^53: a body of more bytes would take a century to arrive.
            ("offset", error.offset().map(|offset| offset as f64).into()),
            (
                "retryAfter",
                error.retry_after_s().map(|seconds| seconds as f64).into(),
            ),
        ]))
    }
}

impl From<Thrown> for JsValue {
    fn from(thrown: Thrown) -> Self {
        thrown.0
    }
}

fn made<const N: usize>(fields: [(&str, JsValue); N]) -> JsValue {
    let fields = object(fields);
    FACTORY.with_borrow(|factory| match factory {
        Some(factory) => factory
            .call1(&JsValue::UNDEFINED, &fields)
            .unwrap_or_else(|thrown| thrown),
        None => fields,
    })
}

/// Arguments that the core's sentences mention, which must not be mistaken for dimensions.
const MENTIONED: [&str; 9] = [
    "access_token",
    "auth_url",
    "base_url",
    "client_id",
    "client_secret",
    "cluster_endpoint",
    "control_audience",
    "group_by",
    "orchestration_audience",
];

/// The error's text with the names of arguments as JavaScript spells them.
fn message(error: &Error) -> String {
    let mut text = error.to_string();
    if let Some(argument) = error.argument_name() {
        text = text.replacen(
            &format!(": {argument}: "),
            &format!(": {}: ", name(argument)),
            1,
        );
    }
    // Elsewhere such a name can be a field of a response.
    if error.kind() == Kind::Config || error.code() == Code::TokenProviderFailed {
        text = MENTIONED
            .iter()
            .fold(text, |text, name| text.replace(name, &camel_case(name)));
    }
    text
}

/// An argument as JavaScript names it.
fn name(argument: &str) -> String {
    match argument {
        // Milliseconds here, as of every timer.
        "longest_retry_wait" => "longestRetryWaitMs".to_owned(),
        _ => camel_case(argument),
    }
}

fn camel_case(snake_case: &str) -> String {
    let mut words = snake_case.split('_');
    let mut name = words.next().unwrap_or_default().to_owned();
    for word in words {
        let (first, rest) = word.split_at(word.len().min(1));
        name.push_str(&first.to_ascii_uppercase());
        name.push_str(rest);
    }
    name
}
