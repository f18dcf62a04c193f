package apierr

import "slices"

// SetVendorCode takes over the code of a vendor's error. Code becomes the vendor's unless
// the gateway has one of that name, which would say something of the gateway: then it stays
// that of the status.
func (e *Error) SetVendorCode(code string) {
	e.VendorCode = code
	switch {
	case code == "overloaded": // in streams, where the status does not say it
		e.Code = "upstream_overloaded"
	case !IsOwn(code):
		e.Code = code
	}
}

// ShownCode returns the code for clients, and whether it is a vendor's own.
func (e *Error) ShownCode() (code string, vendors bool) {
	if e.VendorCode != "" && (e.Own || e.Code == e.VendorCode) {
		return e.VendorCode, true
	}
	return e.Code, false
}

// IsOwn reports whether a code is of the gateway alone: those of docs/reference/errors.md
// without the ones that have the name and the meaning of a vendor's.
func IsOwn(code string) bool {
	_, found := slices.BinarySearch(own[:], code)
	return found
}

var own = [...]string{
	"access_denied", "account_cooling_down", "account_key_refused", "account_lacks_model", "alias_not_found",
	"authorization_pending", "bad_upstream_address", "bad_upstream_body", "bad_upstream_status",
	"bad_upstream_stream", "budget", "budget_exceeded", "budget_not_found", "capture_not_found", "client_closed",
	"combo_not_found", "concurrency_limit_exceeded", "connection_not_found", "content_policy", "cross_site",
	"csrf_token", "destination_not_found", "empty_upstream", "expired_token", "file_unavailable",
	"flow_under_way", "generation_failed", "idempotency_done", "idempotency_in_progress",
	"idempotency_key_reused", "idempotency_mismatch", "identity_provider_not_found", "identity_provider_used",
	"insecure_origin", "invalid_callback", "invalid_grant", "invalid_json", "invalid_lease", "invalid_multipart",
	"invalid_request", "invalid_stream_id", "invitation_invalid", "invitation_not_found", "job_not_found",
	"key_not_found", "key_paused", "key_unavailable", "last_passkey", "loop_detected", "machine_exists",
	"machine_not_found", "machine_required", "machine_too_large", "managed_by_file", "method_not_allowed",
	"misconfigured", "model_not_allowed", "model_not_priced", "name_taken", "needs_reauth", "no_access",
	"no_credentials", "no_flow", "no_script", "not_a_backup", "not_found", "not_implemented", "not_refreshable",
	"overloaded", "page_not_found", "page_unavailable", "passkey_address", "passkey_not_found", "passkeys_off",
	"person_not_found", "person_required", "provider_refused", "provider_unavailable", "reauth_required",
	"refresh_refused", "refreshed_recently", "request_not_found", "request_too_large", "response_not_found",
	"role_required", "scope_required", "seed_refused", "session_expired", "sign_in_refused", "stale", "stopping",
	"storage_failed", "token_unavailable", "too_large", "too_many", "too_many_attempts", "too_many_sockets",
	"transcription_failed", "unavailable", "unknown_code", "unknown_kind", "unknown_operation",
	"unknown_provider", "unsupported_content", "unsupported_encoding", "unsupported_endpoint", "unsupported_flow",
	"unusable_address", "upgrade_not_supported", "upgrade_required", "upstream_blocked_here", "upstream_cut",
	"upstream_failed", "upstream_outcome_unknown", "upstream_overloaded", "upstream_redirect", "upstream_refused",
	"upstream_reset", "upstream_timeout", "upstream_too_large", "upstream_unreachable", "url_not_allowed",
	"video_not_found", "video_not_ready", "websocket_stream_limit_reached",
}
