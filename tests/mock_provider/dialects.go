package main

import (
	"strconv"
	"time"
)

// eol ends a line of an event stream.
func (x *exchange) eol(b []byte) []byte {
	if x.spec.crlf {
		return append(b, "\r\n"...)
	}
	return append(b, '\n')
}

func (x *exchange) data(b []byte, json []byte) []byte {
	b = append(append(b, "data: "...), json...)
	return x.eol(x.eol(b))
}

func num(b []byte, n int) []byte { return strconv.AppendInt(b, int64(n), 10) }

func str(b []byte, parts ...string) []byte {
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// ---- OpenAI: https://platform.openai.com/docs/api-reference/chat

type openai struct{}

func (openai) streamType() string { return "text/event-stream; charset=utf-8" }

func (x *exchange) wantsUsage() bool {
	return x.spec.usage == "always" || (x.in.includeUsage && x.spec.usage != "never")
}

func (openai) prefix(b []byte, x *exchange, object string) []byte {
	b = append(b, `{"id":"chatcmpl-`...)
	b = strconv.AppendInt(b, x.id, 10)
	b = str(b, `","object":"`, object, `","created":`)
	b = strconv.AppendInt(b, x.started.Unix(), 10)
	return str(b, `,"model":"`, x.in.model, `","service_tier":"default","system_fingerprint":"fp_mock","choices":[`)
}

func (x *exchange) usage(b []byte) []byte {
	p, n := x.promptTokens(), x.tokens()
	b = num(append(b, `{"prompt_tokens":`...), p)
	b = num(append(b, `,"completion_tokens":`...), n)
	b = num(append(b, `,"total_tokens":`...), p+n)
	return append(b, `,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}`...)
}

func (d openai) chunk(b []byte, x *exchange, delta, text string, finish string) []byte {
	b = d.prefix(append(b, "data: "...), x, "chat.completion.chunk")
	b = str(b, `{"index":0,"delta":{`, delta, text)
	b = str(b, `},"logprobs":null,"finish_reason":`, finish, `}]`)
	switch {
	case x.spec.usage == "inline" && finish != "null":
		b = x.usage(append(b, `,"usage":`...))
	case x.wantsUsage() && x.spec.usage != "inline":
		b = append(b, `,"usage":null`...)
	}
	return x.eol(x.eol(append(b, '}')))
}

func (d openai) open(b []byte, x *exchange) []byte {
	if x.spec.noRole {
		return b
	}
	return d.chunk(b, x, `"role":"assistant","content":"","refusal":null`, "", "null")
}

func (d openai) token(b []byte, x *exchange, text []byte, i int) []byte {
	if x.spec.tool {
		return d.toolDelta(b, x, text, i)
	}
	return d.chunk(b, x, `"content":"`, string(text)+`"`, "null")
}

// toolDelta is a piece of the arguments of one tool call: {"words":"w0 w1 ..."}.
func (d openai) toolDelta(b []byte, x *exchange, text []byte, i int) []byte {
	call, open, end := `{"index":0,`, "", ""
	if i == 0 {
		call, open = `{"index":0,"id":"call_1","type":"function",`, `{\"words\":\"`
	}
	if i == x.tokens()-1 {
		end = `\"}`
	}
	name := ""
	if i == 0 {
		name = `"name":"mock_tool",`
	}
	return d.chunk(b, x, `"tool_calls":[`+call+`"function":{`+name+`"arguments":"`+open, string(text)+end+`"}}]`, "null")
}

func (d openai) finish(b []byte, x *exchange) []byte {
	b = d.chunk(b, x, "", "", `"`+x.finishReason()+`"`)
	if x.wantsUsage() && x.spec.usage != "inline" {
		b = d.prefix(append(b, "data: "...), x, "chat.completion.chunk")
		b = x.usage(append(b, `],"usage":`...))
		b = x.eol(x.eol(append(b, '}')))
	}
	if x.spec.noDone {
		return b
	}
	return x.data(b, []byte("[DONE]"))
}

func (openai) ping(b []byte, x *exchange) []byte { return x.eol(x.eol(append(b, ": ping"...))) }

func (d openai) broken(b []byte, x *exchange) []byte {
	b = d.prefix(append(b, "data: "...), x, "chat.completion.chunk")
	return x.eol(x.eol(append(b, `{"index":0,"delta":{"content":"cut he`...)))
}

func (d openai) whole(b []byte, x *exchange, text []byte) []byte {
	b = d.prefix(b, x, "chat.completion")
	if x.spec.tool {
		b = str(b, `{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function",`,
			`"function":{"name":"mock_tool","arguments":"{\"words\":\"`, string(text), `\"}"}}]`)
	} else {
		b = str(b, `{"index":0,"message":{"role":"assistant","content":"`, string(text), `"`)
	}
	b = str(b, `,"refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"`, x.finishReason(), `"}],"usage":`)
	return append(x.usage(b), '}')
}

func (openai) errorBody(b []byte, x *exchange, status int, message string) []byte {
	kind, code := "server_error", "null"
	switch {
	case status == 429:
		kind, code = "requests", `"rate_limit_exceeded"`
	case status == 401:
		kind, code = "invalid_request_error", `"invalid_api_key"`
	case status < 500:
		kind = "invalid_request_error"
	}
	return str(b, `{"error":{"message":"`, message, `","type":"`, kind, `","param":null,"code":`, code, `}}`)
}

func (d openai) errorFrame(b []byte, x *exchange, status int) []byte {
	return x.data(b, d.errorBody(nil, x, status, "mock: injected error in the stream"))
}

// ---- OpenAI's older endpoint: https://platform.openai.com/docs/api-reference/completions

type completions struct{ openai }

func (d completions) text(b []byte, x *exchange, text, finish string) []byte {
	b = d.prefix(b, x, "text_completion")
	return str(b, `{"index":0,"text":"`, text, `","logprobs":null,"finish_reason":`, finish, `}]`)
}

func (completions) open(b []byte, x *exchange) []byte { return b }

func (d completions) token(b []byte, x *exchange, text []byte, i int) []byte {
	return x.eol(x.eol(append(d.text(append(b, "data: "...), x, string(text), "null"), '}')))
}

func (d completions) finish(b []byte, x *exchange) []byte {
	b = x.eol(x.eol(append(d.text(append(b, "data: "...), x, "", `"`+x.finishReason()+`"`), '}')))
	if x.wantsUsage() {
		b = d.prefix(append(b, "data: "...), x, "text_completion")
		b = x.usage(append(b, `],"usage":`...))
		b = x.eol(x.eol(append(b, '}')))
	}
	if x.spec.noDone {
		return b
	}
	return x.data(b, []byte("[DONE]"))
}

func (d completions) whole(b []byte, x *exchange, text []byte) []byte {
	b = d.text(b, x, string(text), `"`+x.finishReason()+`"`)
	return append(x.usage(append(b, `,"usage":`...)), '}')
}

// ---- Anthropic: https://docs.anthropic.com/en/api/messages-streaming

type anthropic struct{}

func (anthropic) streamType() string { return "text/event-stream; charset=utf-8" }

func (x *exchange) event(b []byte, name string, json []byte) []byte {
	return x.data(x.eol(str(b, "event: ", name)), json)
}

func (anthropic) open(b []byte, x *exchange) []byte {
	m := strconv.AppendInt([]byte(`{"type":"message_start","message":{"id":"msg_`), x.id, 10)
	m = str(m, `","type":"message","role":"assistant","model":"`, x.in.model,
		`","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":`)
	m = append(num(m, x.promptTokens()), `,"output_tokens":1}}}`...)
	b = x.event(b, "message_start", m)
	b = x.event(b, "content_block_start", []byte(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`))
	return x.event(b, "ping", []byte(`{"type":"ping"}`))
}

func (anthropic) token(b []byte, x *exchange, text []byte, i int) []byte {
	m := append([]byte(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`), text...)
	return x.event(b, "content_block_delta", append(m, `"}}`...))
}

func (x *exchange) stopReason() string {
	switch r := x.finishReason(); r {
	case "stop":
		return "end_turn"
	case "length":
		return "max_tokens"
	default:
		return r
	}
}

func (anthropic) finish(b []byte, x *exchange) []byte {
	b = x.event(b, "content_block_stop", []byte(`{"type":"content_block_stop","index":0}`))
	m := str(nil, `{"type":"message_delta","delta":{"stop_reason":"`, x.stopReason(), `","stop_sequence":null},"usage":{"output_tokens":`)
	b = x.event(b, "message_delta", append(num(m, x.tokens()), "}}"...))
	if x.spec.noDone {
		return b
	}
	return x.event(b, "message_stop", []byte(`{"type":"message_stop"}`))
}

func (anthropic) ping(b []byte, x *exchange) []byte {
	return x.event(b, "ping", []byte(`{"type":"ping"}`))
}

func (anthropic) broken(b []byte, x *exchange) []byte {
	return x.event(b, "content_block_delta", []byte(`{"type":"content_block_delta","index":0,"delta":{"type":"text_de`))
}

func (anthropic) whole(b []byte, x *exchange, text []byte) []byte {
	b = strconv.AppendInt(append(b, `{"id":"msg_`...), x.id, 10)
	b = str(b, `","type":"message","role":"assistant","model":"`, x.in.model, `","content":[{"type":"text","text":"`)
	b = append(b, text...)
	b = str(b, `"}],"stop_reason":"`, x.stopReason(), `","stop_sequence":null,"usage":{"input_tokens":`)
	b = num(b, x.promptTokens())
	return append(num(append(b, `,"output_tokens":`...), x.tokens()), "}}"...)
}

func (anthropic) errorBody(b []byte, x *exchange, status int, message string) []byte {
	kind := "api_error"
	switch status {
	case 400:
		kind = "invalid_request_error"
	case 401:
		kind = "authentication_error"
	case 429:
		kind = "rate_limit_error"
	case 529:
		kind = "overloaded_error"
	}
	b = str(b, `{"type":"error","error":{"type":"`, kind, `","message":"`, message, `"},"request_id":"req_`)
	return append(strconv.AppendInt(b, x.id, 10), `"}`...)
}

func (d anthropic) errorFrame(b []byte, x *exchange, status int) []byte {
	return x.event(b, "error", d.errorBody(nil, x, status, "mock: injected error in the stream"))
}

// ---- Ollama: https://github.com/ollama/ollama/blob/main/docs/api.md

type ollama struct{}

func (ollama) streamType() string { return "application/x-ndjson" }

func (ollama) line(b []byte, x *exchange, text string) []byte {
	b = str(b, `{"model":"`, x.in.model, `","created_at":"`)
	b = time.Now().UTC().AppendFormat(b, time.RFC3339Nano)
	return str(b, `","message":{"role":"assistant","content":"`, text, `"}`)
}

func (ollama) tail(b []byte, x *exchange) []byte {
	ns := time.Since(x.started).Nanoseconds()
	b = strconv.AppendInt(str(b, `,"done":true,"done_reason":"`, x.finishReason(), `","total_duration":`), ns, 10)
	b = num(append(b, `,"load_duration":1000,"prompt_eval_count":`...), x.promptTokens())
	b = num(append(b, `,"prompt_eval_duration":1000,"eval_count":`...), x.tokens())
	b = strconv.AppendInt(append(b, `,"eval_duration":`...), ns, 10)
	return append(b, "}\n"...)
}

func (ollama) open(b []byte, x *exchange) []byte { return b }

func (d ollama) token(b []byte, x *exchange, text []byte, i int) []byte {
	return append(d.line(b, x, string(text)), ",\"done\":false}\n"...)
}

func (d ollama) finish(b []byte, x *exchange) []byte {
	if x.spec.noDone {
		return b
	}
	return d.tail(d.line(b, x, ""), x)
}

func (ollama) ping(b []byte, x *exchange) []byte { return append(b, '\n') }

func (d ollama) broken(b []byte, x *exchange) []byte { return append(d.line(b, x, "cut he"), '\n') }

func (d ollama) whole(b []byte, x *exchange, text []byte) []byte {
	return d.tail(d.line(b, x, string(text)), x)
}

func (ollama) errorBody(b []byte, x *exchange, status int, message string) []byte {
	return str(b, `{"error":"`, message, `"}`)
}

func (d ollama) errorFrame(b []byte, x *exchange, status int) []byte {
	return append(d.errorBody(b, x, status, "mock: injected error in the stream"), '\n')
}
