/** An input document to begin with: a payment that reaches far. */
export const SAMPLE = {
  workflow: {
    name: 'pay-invoice', version: 1, profile: null, mode: 'none', blast_radius: 'high', approvers: [], quorum: null,
    escalate_after_s: null, expires_after_s: null, writes_max: null, spend_max_micros: null,
  },
  step: {
    key: 'pay', position: 0, kind: 'task', phase: null, critical: false, begins_phase: false, last: false, gate: null,
    confidence: null, credentials: [],
  },
  action: {
    operation: 'pay', argv: null, names: [], env: [], effect: 'keyed', blast_radius: 'high', destructive: false, reversible: true,
    rollback: null,
  },
  run: {
    id: 'run_1', workspace: 'default', started_by: 'ada', trigger: 'api', subject: null, labels: {}, iteration: 0, attempt: 0,
    writes: 0, spend_micros: 0,
  },
  worker: null,
  fields: { invoice: 'INV-7', amount: 1_200 },
};
