import { yamlTokens } from '../text/yaml';
import { Copy } from './copy';
import { Text } from './text';

export function Source({ text }: { text: string }) {
  return (
    <div className="source">
      <pre tabIndex={0} aria-label="The workflow file">
        {text
          .trimEnd()
          .split('\n')
          .map((line, index) => (
            <div key={index} className="source-line">
              <span className="line-number" aria-hidden="true">
                {index + 1}
              </span>
              <SourceLine text={line} />
            </div>
          ))}
      </pre>
      <Copy text={text} what="the file" />
    </div>
  );
}

export function SourceLine({ text }: { text: string }) {
  return (
    <span>
      {yamlTokens(text).map((token, index) => (
        <span key={index} className={`y-${token.kind}`}>
          <Text of={token.text} lines />
        </span>
      ))}
    </span>
  );
}
