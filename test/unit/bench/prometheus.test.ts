import { describe, expect, it } from 'vitest';
import { isWrite, sumOf } from '../../bench/prometheus.ts';

const TEXT = `# HELP apiserver_request_total Counter
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",dry_run="",resource="pods",verb="PATCH"} 3
apiserver_request_total{code="201",dry_run="All",resource="namespaces",verb="POST"} 5
apiserver_request_total{code="200",dry_run="",resource="pods",verb="LIST"} 100
apiserver_request_total_other{verb="PATCH"} 1000
coppice_api_requests_total{method="PUT",code="200"} 7
coppice_api_requests_total{method="WATCH",code="200"} 9
plain 1.5e+3
odd{text="a \\"b\\" } c",verb="PUT"} 2
`;

describe('sumOf', () => {
  it('adds the writes of one counter, without dry runs', () => {
    expect(sumOf(TEXT, 'apiserver_request_total', isWrite)).toBe(3);
    expect(sumOf(TEXT, 'coppice_api_requests_total', isWrite)).toBe(7);
  });
  it('accepts series without labels and quoted labels', () => {
    expect(sumOf(TEXT, 'plain')).toBe(1500);
    expect(sumOf(TEXT, 'odd', (labels) => labels.verb === 'PUT')).toBe(2);
  });
  it('is 0 for a counter without samples', () => {
    expect(sumOf(TEXT, 'absent')).toBe(0);
  });
});
