import { describe, expect, it } from 'vitest';
import { itemsAt, parseRoot, parseXML, textAt } from '../../../../providers/aws/xml.ts';

describe('the XML parser for AWS', () => {
  it('reads text, elements and lists of any name', () => {
    const answer = parseXML(
      `<?xml version="1.0" encoding="UTF-8"?>
       <R xmlns="http://ec2.amazonaws.com/doc/"><set><item><id>a</id></item><item><id>b</id></item></set><none/>
       <members><member>x</member></members><text>  a &lt;&amp;&#62;&#x41;&quot;  </text></R>`,
    ).R;
    expect(itemsAt(answer, 'set').map((item) => textAt(item, 'id'))).toEqual(['a', 'b']);
    expect(itemsAt(answer, 'members')).toEqual(['x']);
    expect(itemsAt(answer, 'none')).toEqual([]);
    expect(textAt(answer, 'text')).toBe('a <&>A"');
    expect(textAt(answer, 'not', 'there')).toBe('');
  });

  it.each(['<html><body>Log in<br></body></html>', '', 'upstream timed out', '<R><a></R>', '</R>', '<R>'])(
    'returns nothing for an answer that is not XML: %j',
    (text) => {
      expect(parseXML(text)).toEqual({});
      expect(parseRoot(text)).toBeUndefined();
    },
  );

  it('accepts a root element of any name', () => {
    for (const name of ['VersioningConfiguration', 'GetBucketVersioningOutput'])
      expect(textAt(parseRoot(`\uFEFF<${name}><Status>Enabled</Status></${name}>`), 'Status')).toBe('Enabled');
    expect(parseRoot('<VersioningConfiguration/>')).toBe('');
  });

  it.each(['<html><body>Log in</body></html>', '<HTML/>', '<a/><b/>', '<a>1</a><a>2</a>'])(
    'returns no root element for the answer of a proxy: %j',
    (text) => {
      expect(parseRoot(text)).toBeUndefined();
    },
  );
});
