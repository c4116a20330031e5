"""The names by which programs call what is no sentence: roles, event types, tags and set phrases.

Gathered from the session files of Claude Code and Codex, the exports of ChatGPT and Claude, and the streams of
the Anthropic and OpenAI interfaces. A name stands here only when no person would go by it.
"""

from __future__ import annotations

from collections.abc import Mapping

STREAM, REASONING, TOOL, STRUCTURAL, PROMPT = "stream_fragment", "reasoning", "tool_dump", "structural", "system_prompt"
BASE64, BINARY, GREETING, TOO_SHORT = "base64", "binary", "greeting", "too_short"


def _table(groups: Mapping[str, str]) -> Mapping[str, str]:
    return {name: rule for rule, names in groups.items() for name in names.split()}


# Names of roles, and of event types and content blocks, as `plain` writes them.
KINDS = _table(
    {
        STREAM: """
            content_block_start content_block_delta content_block_stop message_start message_delta message_stop
            text_delta thinking_delta input_json_delta signature_delta stream_event chat.completion.chunk
            response.created response.in_progress response.output_item.added response.output_text.delta
            response.content_part.added response.content_part.done response.function_call_arguments.delta
            response.reasoning_text.delta response.reasoning_summary_text.delta agent_message_delta
            agent_reasoning_delta agent_message_content_delta exec_command_output_delta
        """,
        REASONING: """
            thinking redacted_thinking reasoning agent_reasoning agent_reasoning_raw_content
            agent_reasoning_section_break thought thoughts reasoning_recap chain_of_thought
        """,
        TOOL: """
            tool tool_use tool_result tool_call tool_calls tool_output tool_response server_tool_use mcp_tool_use
            mcp_tool_result web_search_tool_result code_execution_tool_result bash_code_execution_tool_result
            text_editor_code_execution_tool_result function function_call function_call_output function_response
            custom_tool_call custom_tool_call_output local_shell_call local_shell_call_output web_search_call
            file_search_call computer_call computer_call_output code_interpreter_call mcp_call mcp_list_tools
            execution_output tether_browsing_display tether_quote system_error exec_command_begin exec_command_end
            mcp_tool_call_begin mcp_tool_call_end patch_apply_begin patch_apply_end ipython bash_execution
        """,
        STRUCTURAL: """
            file_history_snapshot queue_operation session_meta turn_context token_count compacted compact_boundary
            ghost_snapshot turn_aborted task_started task_complete rate_limit_event hook_progress bash_progress
            agent_progress mcp_progress custom_title ai_title agent_name agent_color permission_mode pr_link
            last_prompt saved_hook_context image_asset_pointer user_editable_context model_editable_context
            hook_success hook_additional_context todo_reminder task_reminder skill_listing deferred_tools_delta
            mcp_instructions_delta edited_text_file nested_memory
        """,
        PROMPT: "system developer",
    }
)
# Types that people's own JSON has, too: no event unless one of EVENT_KEYS stands beside them, or nothing else does.
COMMON_KINDS = _table(
    {
        STRUCTURAL: "summary progress system ping pong init heartbeat keepalive keep_alive",
        TOOL: "function tool",
        REASONING: "thought",
    }
)
EVENT_KEYS = frozenset(
    {"uuid", "leafUuid", "parentUuid", "messageId", "sessionId", "session_id", "subtype"}
    | {"toolUseID", "toolUseId", "tool_use_id", "tool_call_id", "call_id"}
)
BARE_KEYS = frozenset({"type", "event", "seq", "timestamp", "ts", "time"})

# Tags that wrap what a program put into a conversation.
TAGS = _table(
    {
        REASONING: "think thinking thought thoughts reasoning antml:thinking antml:reasoning",
        TOOL: """
            tool_use tool_call tool_calls tool_result tool_results tool_response tool_output tool_use_error
            function_call function_calls function_result function_results antml:function_calls bash-input bash-stdout
            bash-stderr local-command-stdout local-command-stderr persisted-output retrieval_status
        """,
        STRUCTURAL: """
            system-reminder system_reminder command-name command-message command-args command-contents
            local-command-caveat user-prompt-submit-hook session-start-hook post-tool-use-hook task-notification
            new-diagnostics ide_opened_file ide_selection ide_diagnostics environment_context environment_details
            user_instructions permissions turn_aborted user_shell_command subagent_notification skill
        """,
    }
)

# How the notes begin that an agent's program writes in the name of its user, and what each of them is.
OPENINGS = {
    "This session is being continued from a previous conversation that ran out of context": "a digest for the model",
    "# AGENTS.md instructions for /": "a project's standing instructions",
    "Base directory for this skill: /": "the text of a skill",
}
# Notes that are no more than this.
NOTES = frozenset(
    {
        "[Request interrupted by user]",
        "[Request interrupted by user for tool use]",
        "Caveat: The messages below were generated by the user while running local commands. DO NOT respond to these "
        "messages or otherwise consider them in your response unless the user explicitly asks you to.",
        "No response requested.",
        "(no content)",
        "[Tool result missing due to internal error]",
        "[Old tool result content cleared]",
    }
)


def plain(name: str) -> str:
    """The name as the tables have it: `File-History-Snapshot ` is file_history_snapshot."""
    return name.strip().casefold().replace("-", "_")
