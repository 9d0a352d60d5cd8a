/**
 * Longest certificate request that is parsed, in characters of base64 of PEM. A kubelet's has about 1,000. The
 * requester chooses the number of names, and parsing time grows with it: half a second for 9,000.
 */
export const LONGEST_REQUEST = 4 * 1024;
