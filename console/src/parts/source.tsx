import { regoTokens } from '../text/rego';
import { yamlTokens, type YamlToken } from '../text/yaml';
import { Copy } from './copy';
import { Text } from './text';

type Language = 'yaml' | 'rego';
const TOKENS: Record<Language, (line: string) => YamlToken[]> = { yaml: yamlTokens, rego: regoTokens };

export function Source({ text, what = 'The workflow file', language = 'yaml' }: { text: string; what?: string; language?: Language }) {
  return (
    <div className="source">
      <pre tabIndex={0} aria-label={what}>
        {text
          .trimEnd()
          .split('\n')
          .map((line, index) => (
            <div key={index} className="source-line">
              <span className="line-number" aria-hidden="true">
                {index + 1}
              </span>
              <SourceLine text={line} language={language} />
            </div>
          ))}
      </pre>
      <Copy text={text} what="the file" />
    </div>
  );
}

export function SourceLine({ text, language = 'yaml' }: { text: string; language?: Language }) {
  return (
    <span>
      {TOKENS[language](text).map((token, index) => (
        <span key={index} className={`y-${token.kind}`}>
          <Text of={token.text} lines />
        </span>
      ))}
    </span>
  );
}
