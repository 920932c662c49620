//! OpenAI's errors, and those of compatible servers, as [`Error`]s with a code.

use reqwest::header::HeaderMap;

use crate::error::{Code, Error};
use crate::http::refusal;
use crate::json::Object;

/// The error of an unsuccessful HTTP response.
pub(super) fn from_status(status: u16, _: &HeaderMap, body: &[u8]) -> Error {
    let detail = refusal::fields(body).map(|fields| Detail::of_body(&fields)).unwrap_or_default();
    // These two words come with every status, which says more.
    let exact = detail.code().filter(|code| !matches!(code, Code::BadRequest | Code::Server));
    error(exact.unwrap_or_else(|| code_of_status(status, &detail)), &detail).with_status(status)
}

/// The error in an event of a stream, or in a body with a success status: the body, or its `error` field, or
/// a failed response.
pub(super) fn from_event(fields: &Object) -> Error {
    let detail = Detail::of_body(fields);
    let status = detail.codes.iter().find_map(|code| code.parse().ok());
    let code = detail.code().or_else(|| status.map(|status| code_of_status(status, &detail)));
    error(code.unwrap_or(Code::Server), &detail)
}

/// Whether an object says that something failed.
pub(super) fn says_error(fields: &Object) -> bool {
    let is_error = |name: &str| fields.get_as::<String>(name).as_deref() == Some("error");
    crate::http::says_error(fields) || is_error("object") || is_error("type")
}

#[derive(Default)]
struct Detail {
    /// `code` and `type`. Some servers give a status as the code.
    codes: Vec<String>,
    message: String,
}

impl Detail {
    fn of_body(body: &Object) -> Self {
        match body.get("error") {
            Some(error) if error.is_string() => Detail::new(Vec::new(), error.parse().unwrap_or_default()),
            Some(error) if error.is_object() => {
                Object::parse(error.get()).map(|error| Detail::of(&error)).unwrap_or_default()
            }
            _ => Detail::of(body),
        }
    }

    fn of(error: &Object) -> Self {
        let word = |name: &str| {
            let value = error.get(name).filter(|value| value.get() != "null")?;
            Some(value.parse::<String>().unwrap_or_else(|_| value.get().to_owned()))
        };
        let codes = ["code", "type"].into_iter().filter_map(word).filter(|word| word.len() < 100).collect();
        Detail::new(codes, word("message").or_else(|| word("detail")).unwrap_or_default())
    }

    fn new(codes: Vec<String>, message: String) -> Self {
        Detail { codes, message: refusal::cut(message) }
    }

    /// `code` is more exact than `type`.
    fn code(&self) -> Option<Code> {
        let known = self.codes.iter().find_map(|word| code_of_word(word));
        known.map(|code| if code == Code::BadRequest && self.is_too_long() { Code::TooLarge } else { code })
    }

    /// Servers without codes say only in words that the prompt does not fit.
    fn is_too_long(&self) -> bool {
        let phrases =
            ["maximum context length", "context length exceeded", "exceeds the available context size"];
        refusal::says(&self.message, &phrases)
    }
}

fn code_of_word(word: &str) -> Option<Code> {
    Some(match word {
        "insufficient_quota"
        | "billing_hard_limit_reached"
        | "billing_not_active"
        | "quota_exceeded"
        | "insufficient_credits"
        | "payment_required"
        | "project_budget_exceeded" => Code::Billing,
        "rate_limit_exceeded" | "rate_limit_error" | "rate_limit_reached" | "requests" | "tokens" => {
            Code::RateLimited
        }
        "context_length_exceeded"
        | "exceed_context_size_error"
        | "string_above_max_length"
        | "request_too_large"
        | "image_too_large"
        | "image_file_too_large" => Code::TooLarge,
        "invalid_api_key" | "authentication_error" | "account_deactivated" | "token_expired" => Code::Auth,
        "permission_error" | "unsupported_country_region_territory" | "insufficient_permissions" => {
            Code::Permission
        }
        "model_not_found" | "not_found_error" | "NotFoundError" => Code::NotFound,
        "server_overloaded" | "engine_overloaded" | "overloaded_error" | "unavailable_error"
        | "slow_down" => Code::Overloaded,
        "timeout" | "timeout_error" | "vector_store_timeout" => Code::Timeout,
        "server_error" | "internal_server_error" | "InternalServerError" => Code::Server,
        "invalid_request_error"
        | "BadRequestError"
        | "invalid_prompt"
        | "content_policy_violation"
        | "data_residency_mismatch"
        | "bio_policy"
        | "misalignment_policy_violation"
        | "image_content_policy_violation"
        | "invalid_image"
        | "invalid_image_format"
        | "invalid_base64_image"
        | "invalid_image_url"
        | "image_too_small"
        | "image_parse_error"
        | "invalid_image_mode"
        | "unsupported_image_media_type"
        | "empty_image_file"
        | "failed_to_download_image"
        | "image_file_not_found" => Code::BadRequest,
        _ => return None,
    })
}

fn code_of_status(status: u16, detail: &Detail) -> Code {
    match status {
        400 if detail.is_too_long() => Code::TooLarge,
        _ => refusal::code_of_status(status),
    }
}

fn error(code: Code, detail: &Detail) -> Error {
    let kind = detail.codes.first().map(String::as_str).unwrap_or_default();
    refusal::error(code, "OPENAI_API_KEY", [kind, &detail.message])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_an_error_overrules_its_status() {
        let cases: &[(u16, &str, Code)] = &[
            (
                429,
                r#"{"error":{"message":"m","type":"requests","code":"rate_limit_exceeded"}}"#,
                Code::RateLimited,
            ),
            (
                429,
                r#"{"error":{"message":"m","type":"insufficient_quota","code":"insufficient_quota"}}"#,
                Code::Billing,
            ),
            (
                429,
                r#"{"error":{"message":"m","type":"insufficient_quota","param":null,"code":null}}"#,
                Code::Billing,
            ),
            (429, r#"{"error":{"message":"m","code":"billing_hard_limit_reached"}}"#, Code::Billing),
            (
                400,
                r#"{"error":{"message":"m","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
                Code::TooLarge,
            ),
            (
                400,
                r#"{"error":{"message":"m","type":"invalid_request_error","code":"other"}}"#,
                Code::BadRequest,
            ),
            (
                401,
                r#"{"error":{"message":"m","type":"invalid_request_error","code":"invalid_api_key"}}"#,
                Code::Auth,
            ),
            (
                404,
                r#"{"error":{"message":"m","type":"invalid_request_error","code":"model_not_found"}}"#,
                Code::NotFound,
            ),
            // A server of llama.cpp that loads its model, one of vLLM, one of Ollama, and a proxy.
            (
                503,
                r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#,
                Code::Overloaded,
            ),
            (
                400,
                r#"{"object":"error","message":"This model's maximum context length is 9 tokens","type":"BadRequestError","code":400}"#,
                Code::TooLarge,
            ),
            (404, r#"{"error":"model not found"}"#, Code::NotFound),
            (
                401,
                r#"{"error":{"message":"m","type":"invalid_request_error","param":null,"code":null}}"#,
                Code::Auth,
            ),
            (
                501,
                r#"{"error":{"code":501,"message":"This server does not support embeddings","type":"not_supported_error"}}"#,
                Code::BadRequest,
            ),
            (502, "<html>", Code::Server),
            (403, "", Code::Permission),
        ];
        for (status, body, code) in cases {
            assert_eq!(
                from_status(*status, &HeaderMap::new(), body.as_bytes()).code(),
                *code,
                "{status} {body}"
            );
        }
    }

    #[test]
    fn an_error_in_a_stream_has_the_code_of_its_words_or_of_its_number() {
        let cases = [
            (r#"{"error":{"message":"m","type":"server_error","code":null}}"#, Code::Server),
            (r#"{"error":{"message":"m","code":429}}"#, Code::RateLimited),
            (
                r#"{"type":"error","code":"rate_limit_exceeded","message":"m","param":null}"#,
                Code::RateLimited,
            ),
            (r#"{"error":"something"}"#, Code::Server),
        ];
        for (body, code) in cases {
            assert_eq!(from_event(&Object::parse(body).unwrap()).code(), code, "{body}");
        }
    }
}
