/** How a step went: each attempt, wait and pause, and which worker had it. */

import type { Schema, Step } from '../../api/client';
import { Id, Prose, Text, Took } from '../../parts/text';
import { at, Link } from '../../route/router';
import type { RunEvent } from '../../text/events';
import { segments, SEGMENT_WORDS } from '../../text/timeline';

type Attempt = Schema['AttemptView'];

export function WorkerLink({ of }: { of: Attempt }) {
  return <Link to={at('workers', of.session_id)}>{of.worker == null ? <Id of={of.session_id} /> : <Text of={of.worker} />}</Link>;
}

export function Attempts({ step, events, tried }: { step: Step; events: RunEvent[]; tried: Attempt[] }) {
  const list = segments(events).get(step.position) ?? [];
  if (list.length < 2) return null;
  // Where one worker had them all, it stands above.
  const several = new Set(tried.map((attempt) => attempt.session_id)).size > 1;
  return (
    <section>
      <h3>How it went</h3>
      <ol className="attempts">
        {list.map((segment, index) => {
          const worked = segment.kind === 'worked' || segment.kind === 'failed';
          const by = several && worked ? tried.find((attempt) => attempt.attempt === segment.attempt) : undefined;
          return (
            <li key={index}>
              <span className={`segment-mark ${segment.kind}`} aria-hidden="true" />
              <span>
                {SEGMENT_WORDS[segment.kind]}
                {segment.attempt !== undefined && segment.attempt > 0 && segment.kind !== 'retry' && `, attempt ${segment.attempt}`}
                {by !== undefined && <>, at <WorkerLink of={by} /></>}
                {segment.note !== undefined && (
                  <span className="quiet">
                    : <Prose of={segment.note} />
                  </span>
                )}
              </span>
              <span className="number quiet">
                <Took from={segment.from} to={segment.to} />
              </span>
            </li>
          );
        })}
      </ol>
    </section>
  );
}
