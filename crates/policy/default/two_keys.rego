# Two keys: what reaches far or destroys something needs two different people, in every mode and environment.
package interlock

ask contains {"rule": "two_keys", "text": why} if {
	not automatic_rollback
	not two_keys_at_gate
	some why in two_key_reasons
}

needs_two_keys if {
	not automatic_rollback
	count(two_key_reasons) > 0
}

two_key_reasons contains "its blast radius is high" if reach == 3

two_key_reasons contains "it is destructive" if destructive

two_key_reasons contains "it runs a script or a command from its arguments" if {
	shell_script
	not script_listed
}

# An `approval` step before it that two people must pass.
two_keys_at_gate if {
	asks_enough(input.step.gate)
	input.step.gate.quorum >= 2
}
