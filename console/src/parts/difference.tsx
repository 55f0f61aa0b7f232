import { difference } from '../text/difference';
import { SourceLine } from './source';
import { Text } from './text';

interface Props {
  before: string;
  after: string;
  /** What the two are, for screen readers. */
  what: string;
  /** Coloured as a workflow file. */
  yaml?: boolean;
}

const MARKS = { same: ' ', new: '+', gone: '−' } as const;
const WORDS = { same: '', new: 'new: ', gone: 'gone: ' } as const;

/** Two texts in one, line by line: what stayed, what is new, what is gone. */
export function Difference({ before, after, what, yaml = false }: Props) {
  return (
    <div className="source diff">
      <pre tabIndex={0} aria-label={what}>
        {difference(before.trimEnd(), after.trimEnd()).map((line, index) => (
          <div key={index} className={`source-line ${line.kind}`}>
            <span className="line-number" aria-hidden="true">
              {MARKS[line.kind]}
            </span>
            <span className="unseen">{WORDS[line.kind]}</span>
            {yaml ? <SourceLine text={line.text} /> : <span><Text of={line.text} lines /></span>}
          </div>
        ))}
      </pre>
    </div>
  );
}
