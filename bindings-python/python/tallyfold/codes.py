"""What each error code means: `TallyfoldError.code` is one of these.

Codes of `ConfigError` (kind `config`): the arguments or the order of calls are wrong; usually
nothing was sent.

`missing_argument`: A required argument was not given.

`unknown_argument`: An argument with a name that does not exist.

`invalid_argument`: An argument has a value that can't be used.

`invalid_base_address`: A base address is not an absolute http(s) address, or has user info, a query
or a fragment.

`insecure_base_address`: A base address is plain http and points to another machine.

`secret_in_browser`: A client secret was given in a browser, where every visitor could read it.

`wasm_forbidden`: The page or the process does not allow WebAssembly to be compiled. Only JavaScript
can report it.

`invalid_timestamp`: A timestamp is not a date and time with `Z` or an offset from UTC.

`invalid_window`: A window does not start before it ends.

`unknown_dimension`: A dimension that the service does not know, or that the endpoint or table does
not have.

`repeated_dimension`: The same dimension twice.

`no_dimensions`: No dimension at all.

`invalid_page`: `page` or `per_page` below 1.

`overlapping_coverage`: Two tables cover the same time.

`unaligned_window`: A window crosses the edge of a step or range, and its counts can't be split.

`incompatible_tables`: Two tables differ in their dimensions, metric, filter, cluster or client.

`invalid_checkpoint`: A checkpoint that is incomplete, was changed, belongs to another query, has
counts from the future, or is in use.

`memory_limit`: The counts that a collect keeps take more memory than allowed. To save memory, set
`keep`, which adds windows up.

`invalid_rules`: A rules file that isn't TOML, or that has an invalid key or value.

`unsupported_by_format`: The format can't represent what is exported.

`out_of_order`: Methods were called in the wrong order, during another call, or after the end. Or an
outbox or ledger did not get every revision of a follow, one after the other.

Codes of `AuthError` (kind `auth`): the credentials or the tokens were refused, or there are none.

`token_refused`: A token endpoint refused the credentials.

`invalid_token_response`: A token endpoint's response can't be used.

`invalid_token_lifetime`: A token's lifetime is not a positive whole number of seconds.

`token_rejected`: The service answered 401, even to tokens that had just been fetched.

`token_provider_failed`: The caller's own source of tokens failed.

Codes of `ServiceError` (kind `service`): the service or the connection to it has failed.

`redirected`: A redirect (3xx); tallyfold follows none.

`forbidden`: Status 403; for the destination of a push, also 401.

`rate_limited`: Status 429.

`retry_later`: The service requests a longer wait than the caller allows.

`server_error`: Status 5xx.

`unexpected_status`: A status that no other code stands for; for the destination of a push, also a
success without the header that confirms it.

`network_failed`: The HTTP client could not complete the exchange.

`timed_out`: The exchange took longer than the client's timeout.

`deadline_exceeded`: The call, including its retries and waits, took longer than its deadline.

Codes of `ResponseError` (kind `response`): a response or a saved table is not a valid result, or
could not be processed.

`wrong_content_type`: The response has a content type other than JSON.

`wrong_content_encoding`: The response uses a content encoding that was not requested, or is
compressed more than once.

`html_response`: The body is an HTML page instead of JSON.

`empty_body`: No bytes at all, or only white space.

`truncated_body`: The body ended before its JSON did.

`invalid_json`: The body is not JSON.

`invalid_utf8`: A string is not UTF-8. (Such a byte outside of a string is `invalid_json`.)

`lone_surrogate`: An escape for one half of a surrogate pair without the other half.

`byte_order_mark`: A byte order mark before the JSON.

`trailing_bytes`: Bytes after the JSON.

`duplicate_key`: The same key twice in one object.

`missing_field`: A required field is missing.

`wrong_type`: A value of the wrong JSON type.

`invalid_count`: A count that is not a string of ASCII digits.

`count_overflow`: A count above 2^64 - 1, or a count or change that is too large for a column's
number type.

`inexact_count`: A count above 2^53, for a target that stores 64-bit floats.

`sum_overflow`: A sum of counts above 2^64 - 1.

`window_mismatch`: The response is for a window other than the one requested.

`dimension_mismatch`: An entry's dimensions are not exactly the requested ones.

`repeated_combination`: The same combination of dimension values twice.

`depth_limit`: Nested deeper than the limit.

`string_limit`: A string longer than the limit.

`key_limit`: More keys in one object than the limit.

`body_limit`: A body longer than the limit.

`group_limit`: More groups than the limit.

`out_of_memory`: There is not enough memory for what was read.

`crashed`: The core crashed during a call: a bug in tallyfold. Only JavaScript can report it.

`invalid_table`: A saved table that this version can't read, or that was changed after it was
written.

`windows_not_additive`: Counts of adjacent windows do not add up to the counts of the whole range.

Written by scripts/declare.py from what the Rust crates declare. Change it there.
"""

from typing import Final

from tallyfold._names import ErrorCode

__all__ = ["MEANINGS"]

MEANINGS: Final[dict[ErrorCode, str]] = {
    "missing_argument": "A required argument was not given.",
    "unknown_argument": "An argument with a name that does not exist.",
    "invalid_argument": "An argument has a value that can't be used.",
    "invalid_base_address": (
        "A base address is not an absolute http(s) address, or has user info, a query or a "
        "fragment."
    ),
    "insecure_base_address": "A base address is plain http and points to another machine.",
    "secret_in_browser": (
        "A client secret was given in a browser, where every visitor could read it."
    ),
    "wasm_forbidden": (
        "The page or the process does not allow WebAssembly to be compiled. Only JavaScript can "
        "report it."
    ),
    "invalid_timestamp": "A timestamp is not a date and time with `Z` or an offset from UTC.",
    "invalid_window": "A window does not start before it ends.",
    "unknown_dimension": (
        "A dimension that the service does not know, or that the endpoint or table does not have."
    ),
    "repeated_dimension": "The same dimension twice.",
    "no_dimensions": "No dimension at all.",
    "invalid_page": "`page` or `per_page` below 1.",
    "overlapping_coverage": "Two tables cover the same time.",
    "unaligned_window": (
        "A window crosses the edge of a step or range, and its counts can't be split."
    ),
    "incompatible_tables": (
        "Two tables differ in their dimensions, metric, filter, cluster or client."
    ),
    "invalid_checkpoint": (
        "A checkpoint that is incomplete, was changed, belongs to another query, has counts from "
        "the future, or is in use."
    ),
    "memory_limit": (
        "The counts that a collect keeps take more memory than allowed. To save memory, set `keep`,"
        " which adds windows up."
    ),
    "invalid_rules": "A rules file that isn't TOML, or that has an invalid key or value.",
    "unsupported_by_format": "The format can't represent what is exported.",
    "out_of_order": (
        "Methods were called in the wrong order, during another call, or after the end. Or an "
        "outbox or ledger did not get every revision of a follow, one after the other."
    ),
    "token_refused": "A token endpoint refused the credentials.",
    "invalid_token_response": "A token endpoint's response can't be used.",
    "invalid_token_lifetime": "A token's lifetime is not a positive whole number of seconds.",
    "token_rejected": "The service answered 401, even to tokens that had just been fetched.",
    "token_provider_failed": "The caller's own source of tokens failed.",
    "redirected": "A redirect (3xx); tallyfold follows none.",
    "forbidden": "Status 403; for the destination of a push, also 401.",
    "rate_limited": "Status 429.",
    "retry_later": "The service requests a longer wait than the caller allows.",
    "server_error": "Status 5xx.",
    "unexpected_status": (
        "A status that no other code stands for; for the destination of a push, also a success "
        "without the header that confirms it."
    ),
    "network_failed": "The HTTP client could not complete the exchange.",
    "timed_out": "The exchange took longer than the client's timeout.",
    "deadline_exceeded": (
        "The call, including its retries and waits, took longer than its deadline."
    ),
    "wrong_content_type": "The response has a content type other than JSON.",
    "wrong_content_encoding": (
        "The response uses a content encoding that was not requested, or is compressed more than "
        "once."
    ),
    "html_response": "The body is an HTML page instead of JSON.",
    "empty_body": "No bytes at all, or only white space.",
    "truncated_body": "The body ended before its JSON did.",
    "invalid_json": "The body is not JSON.",
    "invalid_utf8": "A string is not UTF-8. (Such a byte outside of a string is `invalid_json`.)",
    "lone_surrogate": "An escape for one half of a surrogate pair without the other half.",
    "byte_order_mark": "A byte order mark before the JSON.",
    "trailing_bytes": "Bytes after the JSON.",
    "duplicate_key": "The same key twice in one object.",
    "missing_field": "A required field is missing.",
    "wrong_type": "A value of the wrong JSON type.",
    "invalid_count": "A count that is not a string of ASCII digits.",
    "count_overflow": (
        "A count above 2^64 - 1, or a count or change that is too large for a column's number type."
    ),
    "inexact_count": "A count above 2^53, for a target that stores 64-bit floats.",
    "sum_overflow": "A sum of counts above 2^64 - 1.",
    "window_mismatch": "The response is for a window other than the one requested.",
    "dimension_mismatch": "An entry's dimensions are not exactly the requested ones.",
    "repeated_combination": "The same combination of dimension values twice.",
    "depth_limit": "Nested deeper than the limit.",
    "string_limit": "A string longer than the limit.",
    "key_limit": "More keys in one object than the limit.",
    "body_limit": "A body longer than the limit.",
    "group_limit": "More groups than the limit.",
    "out_of_memory": "There is not enough memory for what was read.",
    "crashed": "The core crashed during a call: a bug in tallyfold. Only JavaScript can report it.",
    "invalid_table": (
        "A saved table that this version can't read, or that was changed after it was written."
    ),
    "windows_not_additive": (
        "Counts of adjacent windows do not add up to the counts of the whole range."
    ),
}
"""Every code with its meaning."""
