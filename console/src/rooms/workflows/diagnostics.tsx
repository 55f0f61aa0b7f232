/** What the server finds in a workflow file, line by line. */

import { queryOptions } from '@tanstack/react-query';
import { api, must, type Schema } from '../../api/client';
import { Text } from '../../parts/text';

/** The same text is checked once. */
export const validationQuery = (source: string) =>
  queryOptions({
    queryKey: ['validation', source],
    queryFn: () => must(api.POST('/api/v1/workflows/validate', { body: { source } })),
    staleTime: Infinity,
    gcTime: 60_000,
  });

interface Props {
  of: Schema['Validation'];
  /** Goes to a place in the file, where there is an editor. */
  goTo?: (line: number, column: number) => void;
}

export function Diagnostics({ of, goTo }: Props) {
  if (of.diagnostics.length === 0) return <p className="good">Nothing is wrong with it.</p>;
  return (
    <ul className="diagnostics" aria-label="What was found in the file">
      {of.diagnostics.map((found, index) => (
        <li key={index} className={found.severity}>
          <Place line={found.line} column={found.column} goTo={goTo} /> <Text of={found.message} />
          {found.help != null && (
            <span className="quiet">
              {' '}
              <Text of={found.help} />
            </span>
          )}
        </li>
      ))}
    </ul>
  );
}

function Place({ line, column, goTo }: { line: number; column: number; goTo: Props['goTo'] }) {
  const place = `${line}:${column}`;
  if (goTo === undefined) return <span className="mono">{place}</span>;
  return (
    <button type="button" className="place-in-file mono" aria-label={`Go to line ${line}, column ${column}`} onClick={() => goTo(line, column)}>
      {place}
    </button>
  );
}
