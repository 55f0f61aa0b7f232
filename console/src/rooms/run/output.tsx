/** What the selected step writes, or has written; nothing where it has written nothing. */

import { useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import type { Step } from '../../api/client';
import { Terminal } from '../../terminal/terminal';
import { hasStopped } from './actions';
import { outputQuery } from './query';

export function StepOutput({ run, step }: { run: string; step: Step }) {
  const written = useQuery(outputQuery(run, step.key));
  const attempts = written.data?.attempts ?? [];
  const [attempt, setAttempt] = useState<number>();
  const writes = step.state === 'running' && step.kind === 'command';
  if (attempts.length === 0 && !writes) return null;
  return (
    <section className="step-output">
      <div className="pane-head">
        <h3>Written while it ran</h3>
        {attempts.length > 1 && (
          <select value={attempt ?? ''} aria-label="Attempt" onChange={(event) => setAttempt(Number(event.target.value) || undefined)}>
            <option value="">All attempts</option>
            {attempts.map((each) => (
              <option key={each.attempt} value={each.attempt}>
                Attempt {each.attempt}
              </option>
            ))}
          </select>
        )}
      </div>
      <Terminal key={`${step.key} ${attempt ?? ''}`} run={run} step={step.key} attempt={attempt} stopped={hasStopped(step)} />
    </section>
  );
}
