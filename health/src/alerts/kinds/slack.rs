//! An incoming webhook of Slack, which accepts `{"text": …}` and answers `ok`.
//!
//! In a text, Slack uses `&`, `<` and `>` for entities, links and mentions, so they are escaped.

use std::sync::Arc;

use serde::Serialize;
use tallyfold::sending::Delivery;

use super::{Form, Notice, POST, Writer, command_for_chat};
use crate::alerts::alert::json_of;

pub(crate) const FORM: Form = Form {
    about: "a Slack channel",
    usual_url: None,
    path: "",
    path_of: |_| String::new(),
    options: &[],
    delivery: Delivery {
        is_accepted: |answer| answer.status == 200 && answer.body.trim_ascii() == b"ok",
        ..POST
    },
    writer: |_| Ok(Writer::Each(Arc::new(message))),
};

#[derive(Serialize)]
struct Message {
    text: String,
}

fn message(notice: &Notice<'_>) -> String {
    let mut text = format!("*{}*: {}", notice.head(), escaped(&notice.message()));
    if let Some(command) = command_for_chat(notice) {
        text += &format!("\n`{}`", escaped(command));
    }
    json_of(&Message { text })
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
