//! The messages of the Model Context Protocol: a JSON object on each line of stdin and stdout. rmcp's own transport contains code
//! for every message of the protocol. This transport reads and writes only the messages of a server with tools and resources, so
//! the command is 0.4 MB smaller.

use std::io;
use std::mem;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequest, CancelledNotification, ClientJsonRpcMessage, ClientNotification,
    ClientRequest, CustomRequest, DiscoverRequest, ErrorData, InitializeRequest,
    InitializedNotification, JsonRpcMessage, JsonRpcResponse, JsonRpcVersion2_0,
    ListResourceTemplatesRequest, ListResourcesRequest, ListToolsRequest, PingRequest,
    ReadResourceRequest, RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::Transport;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Stdin, Stdout, stdin, stdout};
use tokio::sync::Mutex;

/// The maximum length of a line, in bytes. Longer lines are ignored.
const LONGEST_LINE: usize = 16 << 20;

/// The lines of stdin and stdout.
pub(super) struct Lines {
    stdin: BufReader<Stdin>,
    /// The part of the next line that has been read.
    line: Vec<u8>,
    stdout: Arc<Mutex<Stdout>>,
}

impl Lines {
    pub(super) fn new() -> Self {
        Self {
            stdin: BufReader::new(stdin()),
            line: Vec::new(),
            stdout: Arc::new(Mutex::new(stdout())),
        }
    }

    /// Reads the next line; `None` at the end of stdin. If the caller drops the future, the next call resumes the same line.
    async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let bytes = self.stdin.fill_buf().await.ok()?;
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(bytes.len(), |end| end + 1);
            if length == 0 {
                return None;
            }
            if self.line.len() <= LONGEST_LINE {
                self.line.extend_from_slice(&bytes[..length]);
            }
            self.stdin.consume(length);
            if end.is_some() {
                let line = mem::take(&mut self.line);
                if line.len() <= LONGEST_LINE {
                    return Some(line);
                }
            }
        }
    }
}

impl Transport<RoleServer> for Lines {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (line, stdout) = (line_of(message), Arc::clone(&self.stdout));
        async move {
            let line = line?;
            let mut stdout = stdout.lock().await;
            stdout.write_all(&line).await?;
            stdout.flush().await
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let line = self.next().await?;
            match message_of(&line) {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                // Send the response in a task of its own, because the caller may drop this future.
                Err(error) => drop(tokio::spawn(self.send(JsonRpcMessage::error(error, None)))),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.stdout.lock().await.flush().await
    }
}

/// Reads a message. Returns `None` for text that is not JSON, for notifications that have no effect on this server, and for
/// responses: this server sends no requests.
///
/// # Errors
/// For JSON that isn't a message: the error to respond with.
fn message_of(line: &[u8]) -> Result<Option<ClientJsonRpcMessage>, ErrorData> {
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
    let Ok(message) = serde_json::from_slice::<Value>(line) else {
        return Ok(None);
    };
    let invalid = || ErrorData::invalid_request("Invalid request", None);
    let has = |name: &str| message.get(name).is_some();
    let is_response = has("result") || has("error");
    let id = message.get("id").map(RequestId::deserialize).transpose();
    let id = id.map_err(|_| invalid())?;
    match (message["method"].as_str(), id) {
        _ if message["jsonrpc"] != "2.0" => Err(invalid()),
        (Some(method), Some(id)) if !is_response => {
            let request = request_of(method, &message).ok_or_else(invalid)?;
            Ok(Some(JsonRpcMessage::request(request, id)))
        }
        (Some(method), None) if !is_response => {
            let notification = notification_of(method, &message);
            Ok(notification.map(JsonRpcMessage::notification))
        }
        (None, _) if is_response => Ok(None),
        _ => Err(invalid()),
    }
}

/// Reads a request. If its method is unknown, or its parameters have a wrong type, it is a [`CustomRequest`].
fn request_of(method: &str, message: &Value) -> Option<ClientRequest> {
    let typed = match method {
        "initialize" => read::<InitializeRequest, _>,
        "server/discover" => read::<DiscoverRequest, _>,
        "ping" => read::<PingRequest, _>,
        "tools/list" => read::<ListToolsRequest, _>,
        "tools/call" => read::<CallToolRequest, _>,
        "resources/list" => read::<ListResourcesRequest, _>,
        "resources/templates/list" => read::<ListResourceTemplatesRequest, _>,
        "resources/read" => read::<ReadResourceRequest, _>,
        _ => read::<CustomRequest, _>,
    };
    typed(message).or_else(|| read::<CustomRequest, _>(message))
}

fn notification_of(method: &str, message: &Value) -> Option<ClientNotification> {
    match method {
        "notifications/cancelled" => read::<CancelledNotification, _>(message),
        "notifications/initialized" => read::<InitializedNotification, _>(message),
        _ => None,
    }
}

fn read<'a, T: Deserialize<'a> + Into<M>, M>(message: &'a Value) -> Option<M> {
    T::deserialize(message).ok().map(Into::into)
}

/// Formats a response as a line, with its line feed.
///
/// # Errors
/// For a message that this server does not send.
fn line_of(message: ServerJsonRpcMessage) -> io::Result<Vec<u8>> {
    let mut line = match message {
        JsonRpcMessage::Error(error) => serde_json::to_vec(&error)?,
        JsonRpcMessage::Response(JsonRpcResponse { id, result, .. }) => match result {
            ServerResult::InitializeResult(result) => written(id, result)?,
            ServerResult::DiscoverResult(result) => written(id, result)?,
            ServerResult::EmptyResult(result) => written(id, result)?,
            ServerResult::ListToolsResult(result) => written(id, result)?,
            ServerResult::CallToolResult(result) => written(id, result)?,
            ServerResult::ListResourcesResult(result) => written(id, result)?,
            ServerResult::ListResourceTemplatesResult(result) => written(id, result)?,
            ServerResult::ReadResourceResult(result) => written(id, result)?,
            _ => return Err(io::ErrorKind::Unsupported.into()),
        },
        _ => return Err(io::ErrorKind::Unsupported.into()),
    };
    line.push(b'\n');
    Ok(line)
}

fn written<R: Serialize>(id: RequestId, result: R) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&JsonRpcResponse { jsonrpc: JsonRpcVersion2_0, id, result })
}
