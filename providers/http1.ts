import { Agent } from 'undici';

/**
 * For the clouds' APIs. Not over HTTP/2: undici 8.12 gives a request up (a time limit is enough) in the one way that keeps Node 24.21
 * in an endless loop while a part of the request is unsent (test/unit/kube/transport.test.ts).
 */
export const http1 = new Agent({ allowH2: false });
