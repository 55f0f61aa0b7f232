import type { ReactNode } from 'react';
import { Text } from '../../parts/text';
import { PHASE_WORDS } from '../run/phases';
import { waitOf, type DefinedStep, type Definition } from '../run/query';

/** The steps as the file has them, one after the other. */
export function StepList({ definition }: { definition: Definition }) {
  return (
    <ol className="step-list">
      {(definition.steps ?? []).map((step) => (
        <li key={step.id}>
          <p>
            <strong>
              <Text of={step.id} />
            </strong>{' '}
            <span className="quiet">{what(step)}</span>
          </p>
          {step.description !== undefined && (
            <p>
              <Text of={step.description} />
            </p>
          )}
          <p className="tags">
            {step.if !== undefined && (
              <span className="tag">
                only if <code><Text of={step.if} /></code>
              </span>
            )}
            {step.phase !== undefined && <span className="tag">{PHASE_WORDS[step.phase].toLowerCase()}</span>}
            {step.critical === true && <span className="tag warn">critical</span>}
            {step.effect !== undefined && <span className={`tag effect-${step.effect}`}>{step.effect}</span>}
            {step.blast_radius !== undefined && <span className={`tag radius-${step.blast_radius}`}>blast radius {step.blast_radius}</span>}
            {step.rollback !== undefined && (
              <span className="tag">
                undone by <Text of={step.rollback.task ?? step.rollback.uses ?? 'a command'} />
              </span>
            )}
          </p>
        </li>
      ))}
    </ol>
  );
}

function what(step: DefinedStep): ReactNode {
  if (step.task !== undefined) return <>task <code><Text of={step.task} /></code></>;
  if (step.uses !== undefined) return <>calls <code><Text of={step.uses} /></code></>;
  if (step.run !== undefined) return <>runs <code><Text of={Array.isArray(step.run) ? step.run.join(' ') : String(step.run)} /></code></>;
  if (step.model !== undefined) return 'asks a model';
  if (step.transform !== undefined) return 'computes a value';
  if (step.approval !== undefined) {
    const message = (step.approval as { message?: string } | null)?.message;
    return message === undefined ? 'asks people' : <>asks people: <Text of={message} /></>;
  }
  if (step.wait !== undefined) return <>waits for <code><Text of={waitOf(step)} /></code></>;
  return '';
}
