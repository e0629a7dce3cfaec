# Completion for bash: commands and options are read from the tool's own --help.
_gputrace()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} tool=${COMP_WORDS[0]}
	local command=${COMP_WORDS[1]} words

	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ] && [[ $cur != -* ]]; then
		words=$("$tool" --commands 2>/dev/null | sed -n 's/^  \([a-z]*\) .*/\1/p')
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
	elif [[ $cur == -* ]]; then
		words=$("$tool" "$command" --help 2>/dev/null | sed -nE 's/^  +(-., )?(--[a-z-]+).*/\2/p')
		mapfile -t COMPREPLY < <(compgen -W "$words --help" -- "$cur")
		return
	elif [[ $prev == --* ]]; then
		# The values stand in the help as a|b|c.
		words=$("$tool" "$command" --help 2>/dev/null |
			sed -nE "s/^  +(-., )?$prev [A-Z|%]+ +([a-z0-9|]+\\|[a-z0-9]+)\$/\\2/p" | tr '|' ' ')
		[ "$prev" = --format ] && words="text json csv md"
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
		[ -n "$words" ] && return
	elif [ "$command" = at ] && [ "$COMP_CWORD" -eq 2 ]; then
		mapfile -t COMPREPLY < <(compgen -W "peak oom end step:" -- "$cur")
		return
	fi
	mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -d -S / -- "$cur"; compgen -f -X '!*.@(gtrace|pickle)' -- "$cur")
}
complete -o nospace -o filenames -F _gputrace gputrace
