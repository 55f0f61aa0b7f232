# Validation modes: before which steps people are asked.
#
#   per_step        every step that changes something
#   per_phase       before each phase, once for all its steps that are known by then; every other one for itself; and what
#                   critical_only asks about
#   critical_only   critical steps, and what is not approved automatically (auto_approval.rego)
#   final_only      the last step that changes something; only for workflows that reach no further than low, else as critical_only
#   none            neither the workflow nor its profile promises anything: only what is declared critical
#
# An `approval` step of the workflow itself that stands before the step counts as the question, so that nobody is asked
# twice: if it asks the people whom the configuration names (approval.rego).
package interlock

ask contains {"rule": "mode_per_step", "text": "the mode per_step asks before every step that changes something"} if {
	input.workflow.mode == "per_step"
	mode_applies
}

ask contains {"rule": "mode_per_phase", "text": "the mode per_phase asks before each phase, and a phase begins here"} if {
	input.workflow.mode == "per_phase"
	input.step.begins_phase
	mode_applies
}

# What people were not shown when the phase began they have not agreed to.
ask contains {"rule": "mode_per_phase", "text": "the mode per_phase asks for what was not known when its phase began"} if {
	input.workflow.mode == "per_phase"
	not input.step.begins_phase
	not asks_enough(input.step.phase_gate)
	mode_applies
	not input.run.agreed
}

ask contains {"rule": "critical_step", "text": "the step is declared critical"} if {
	input.step.critical
	input.workflow.mode != "final_only"
	not_asked_yet
}

ask contains {"rule": "critical_step", "text": "the step is declared critical, and final_only is for blast radius low"} if {
	input.step.critical
	final_only_too_wide
	not_asked_yet
}

ask contains {"rule": "not_auto_approved", "text": why} if {
	auto_approval_counts
	mode_applies
	some why in not_auto_approved
}

ask contains {"rule": "mode_final_only", "text": "the mode final_only asks before the last step"} if {
	input.workflow.mode == "final_only"
	input.step.last
	mode_applies
}

# A step without effect was never proposed; what undoes a failed step is covered by its permission.
mode_applies if {
	changes_something
	not_asked_yet
}

not_asked_yet if {
	not automatic_rollback
	not asks_enough(input.step.gate)
}

auto_approval_counts if input.workflow.mode in {"per_phase", "critical_only"}

auto_approval_counts if final_only_too_wide

final_only_too_wide if {
	input.workflow.mode == "final_only"
	input.workflow.blast_radius != "low"
}
