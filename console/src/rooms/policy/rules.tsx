/** The files of a version: rules, data and tests. */

import { useQuery } from '@tanstack/react-query';
import { useRowKeys } from '../../keyboard/rows';
import { Loaded } from '../../parts/loaded';
import { Source } from '../../parts/source';
import { Text } from '../../parts/text';
import { Link, useAddress, useParam, withQuery } from '../../route/router';
import { policyFilesQuery, type Policy, type PolicyVersion } from './query';
import { VersionChoice } from './version-choice';

export function Rules({ policy, versions }: { policy: Policy; versions: PolicyVersion[] }) {
  const [asked, setAsked] = useParam('version');
  const version = asked === '' ? (policy.active ?? 0) : Number(asked);
  const files = useQuery(policyFilesQuery(version === 0 ? undefined : version));
  useRowKeys('Rules', 'file', 'main .file-list a');
  return (
    <>
      <div className="bar-of-fields">
        <VersionChoice label="Version" policy={policy} versions={versions} value={version} choose={(next) => setAsked(String(next))} withDefault />
      </div>
      <Loaded query={files} rows={10}>
        {(found) => <Files files={found} />}
      </Loaded>
    </>
  );
}

function Files({ files }: { files: Record<string, string> }) {
  const { query, path } = useAddress();
  // Tests decide nothing: they come last.
  const names = Object.keys(files).toSorted((a, b) => Number(isTest(a)) - Number(isTest(b)) || a.localeCompare(b));
  const shown = names.find((name) => name === query.get('file')) ?? names.find((name) => name === 'decision.rego') ?? names[0];
  const to = (name: string) => {
    const next = new URLSearchParams(query);
    next.set('file', name);
    return withQuery(path, next);
  };
  if (shown === undefined) return <p className="quiet">It has no files.</p>;
  return (
    <div className="versions">
      <ul className="version-list file-list" aria-label="Files">
        {names.map((name) => (
          <li key={name}>
            <Link to={to(name)} aria-current={name === shown ? 'true' : undefined} className={isTest(name) ? 'test-file' : undefined}>
              <Text of={name} />
            </Link>
          </li>
        ))}
      </ul>
      <div>
        {isTest(shown) && <p className="quiet">A version is taken only where its tests pass: these have passed.</p>}
        <Source text={files[shown]!} what={`The file ${shown}`} language={shown.endsWith('.rego') ? 'rego' : 'yaml'} />
      </div>
    </div>
  );
}

function isTest(name: string): boolean {
  return name.endsWith('_test.rego');
}
