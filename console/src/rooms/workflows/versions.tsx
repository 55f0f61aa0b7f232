/** The versions of a workflow, and what changed between two of them. */

import { useQuery } from '@tanstack/react-query';
import { api, must, type Schema } from '../../api/client';
import { Loading, ProblemNote } from '../../parts/notes';
import { SourceLine } from '../../parts/source';
import { Ago, Text } from '../../parts/text';
import { at, Link } from '../../route/router';
import { difference } from '../../text/difference';
import { definitionQuery } from '../run/query';

export function Versions({ name, shown }: { name: string; shown: Schema['VersionDetail'] }) {
  const list = useQuery({
    queryKey: ['workflow', name, 'versions'],
    queryFn: () => must(api.GET('/api/v1/workflows/{workflow}/versions', { params: { path: { workflow: name }, query: { limit: 100 } } })),
  });
  const before = useQuery({ ...definitionQuery(name, shown.version - 1), enabled: shown.version > 1 });
  if (list.data === undefined) return list.error === null ? <Loading /> : <ProblemNote error={list.error} />;
  return (
    <div className="versions">
      <ul className="version-list">
        {list.data.versions.map((version) => (
          <li key={version.version}>
            <Link to={`${at('workflows', name)}?tab=versions&version=${version.version}`} aria-current={version.version === shown.version ? 'true' : undefined}>
              <strong>Version {version.version}</strong>
              <span className="quiet">
                <Ago at={version.applied_at} /> {version.applied_by != null && <>by <Text of={version.applied_by} /></>}
              </span>
            </Link>
          </li>
        ))}
      </ul>
      <div>
        {shown.version === 1 ? (
          <p className="quiet">The first version. Later ones show here what they changed.</p>
        ) : before.data == null ? (
          <Loading />
        ) : (
          <div className="source diff">
            <pre tabIndex={0} aria-label={`What version ${shown.version} changed`}>
              {difference(before.data.source.trimEnd(), shown.source.trimEnd()).map((line, index) => (
                <div key={index} className={`source-line ${line.kind}`}>
                  <span className="line-number">
                    {line.kind === 'same' ? ' ' : line.kind === 'new' ? '+' : '−'}
                  </span>
                  <SourceLine text={line.text} />
                </div>
              ))}
            </pre>
          </div>
        )}
      </div>
    </div>
  );
}
