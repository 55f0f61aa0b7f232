/** What stands where there is nothing, not yet something, or something went wrong. */

import type { ReactNode } from 'react';
import { Refusal, signInAddress, type Problem } from '../api/client';
import { Link } from '../route/router';
import { Copy } from './copy';
import { Prose } from './text';

/** An empty room teaches: what would stand here, and the command or file that puts it there. */
export function Empty({ title, children, command }: { title: string; children?: ReactNode; command?: string }) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children !== undefined && <div className="prose">{children}</div>}
      {command !== undefined && <Command text={command} />}
    </div>
  );
}

export function Command({ text }: { text: string }) {
  return (
    <div className="command">
      <pre tabIndex={0} aria-label="Command">
        {text}
      </pre>
      <Copy text={text} what="the command" />
    </div>
  );
}

/** What to do about a code, where the server's own sentence does not say it already. */
const ADVICE: Record<string, string> = {
  PERMISSION_DENIED: 'Ask an admin of this tenant for the role.',
  RATE_LIMITED: 'Wait a moment, then try again.',
  CSRF_INVALID: 'Reload this page, then try again.',
  APPROVAL_DIGEST_MISMATCH: 'What is asked has changed meanwhile. Close this, read it again, then decide.',
  RUN_CONTINUED: 'Another run has taken over from this one: go on from that.',
  UNAUTHORIZED: 'You are being taken to the sign-in page.',
};

/** What to do about a refusal, as far as its own words leave it open. */
export function adviceOn({ code, detail }: Problem): string | undefined {
  // No role of the tenant grants what is for administrators of the installation.
  if (/administrator of the installation/.test(detail)) return undefined;
  return ADVICE[code] ?? (code.endsWith('_NOT_FOUND') ? 'It may have been deleted, or belong to another tenant.' : undefined);
}

/** Details begin small and end without a full stop; others may stand behind them. */
export function asSentence(words: string): string {
  const begun = words.charAt(0).toUpperCase() + words.slice(1);
  return /[.!?…:]$/.test(begun) ? begun : `${begun}.`;
}

export function ProblemNote({ error }: { error: Error }) {
  const problem = error instanceof Refusal ? error.problem : undefined;
  const advice = problem === undefined ? undefined : adviceOn(problem);
  return (
    <div className="problem" role="alert">
      <p>
        <Prose of={asSentence(error.message)} />
        {advice !== undefined && ` ${advice}`}
      </p>
      {problem?.diagnostics != null && problem.diagnostics.length > 0 && (
        <ul>
          {problem.diagnostics.map((found, index) => (
            <li key={index}>
              Line {found.line}: <Prose of={found.message} /> {found.help != null && <Prose of={found.help} />}
            </li>
          ))}
        </ul>
      )}
      {problem?.code === 'SIGN_IN_AGAIN' && (
        <p>
          <a href={signInAddress()}>Sign in again</a>, then decide.
        </p>
      )}
      {problem?.code === 'SECOND_KEY_REQUIRED' && (
        <p>
          <Link to="/settings/changes">See the change</Link>: once another admin has agreed, you carry it out from there.
        </p>
      )}
      {problem?.run_id != null && (
        <p>
          <Link to={`/runs/${problem.run_id}`}>Look at that run</Link>
        </p>
      )}
      {problem !== undefined && problem.code !== 'UNKNOWN' && <code className="quiet">{problem.code}</code>}
    </div>
  );
}

/** Lines of the height that is to come, so that nothing jumps when it does. */
export function Loading({ rows = 6 }: { rows?: number }) {
  return (
    <div className="loading" aria-busy="true" aria-label="Loading">
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} className="bone" />
      ))}
    </div>
  );
}
