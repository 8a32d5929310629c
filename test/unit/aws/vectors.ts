/**
 * Facts of the signing test suite of AWS: requests that have no header but `Host`, signed in the query; one of each kind.
 *
 * Source: the public repository awslabs/aws-c-auth (Apache-2.0), tests/aws-signing-test-suite/v4, commit
 * 495329c2433034bd8fd53fc6ba9e0202d3fac876.
 */

/** One request, whose method is the first word of its name, and what comes of it. */
interface Fact {
  readonly name: string
  /** Default `/`. */
  readonly path?: string
  /** Default none. */
  readonly query?: string
  /** What is signed, where that is not what was given. */
  readonly signedPath?: string
  readonly signedQuery?: string
  readonly sessionToken?: string
  /** The session token is no part of what is signed. */
  readonly tokenIsAddedLater?: true
  /** Of the canonical request. */
  readonly hash: string
  readonly signature: string
}

export const common = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  host: 'example.amazonaws.com',
  region: 'us-east-1',
  service: 'service',
  expires: 3600,
  date: Date.UTC(2015, 7, 30, 12, 36),
}

const longToken =
  'AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=='

const facts: readonly Fact[] = [
  {
    name: 'get-relative-unnormalized',
    path: '/example/..',
    hash: '6e02e2dba21d6f269bae339b86ff27a4b7bbc9d88c482abccbfbf8a49d602482',
    signature: 'cbcb213b928a077e43275df47b500f1dfaa864ab3f5a18f6b95f4ff0938167ee',
  },
  {
    name: 'get-slashes-unnormalized',
    path: '//example//',
    hash: '82241114f9a6320f054333c890952474aa7a0069d28a4326c3a8d95bbecc69ee',
    signature: '822a5a9ba28072c5ab2bb4a6307d0c88276d40e49fec6b724c03fb4d4ba60fc2',
  },
  {
    name: 'get-space-normalized',
    path: '/example space/',
    signedPath: '/example%20space/',
    hash: 'cc3dd817bd405e51225826ec4934a96d065d6af5b6b0163c7a5abbd26a84519e',
    signature: '7a1f416954786484c9824d93c1f26ef64acb9b1b6c9154d08c9f07d0e394abf6',
  },
  {
    name: 'get-unreserved',
    path: '/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz',
    hash: '3134f2fbc6ef58f34b74b01643a159bfccbc121ea4288a4b75e65bc805d08219',
    signature: '95968482db1b9e0fadef6efc1bd24689f77c77d9ef56919c96a28cc92e0d6005',
  },
  {
    name: 'get-utf8',
    path: '/ሴ',
    signedPath: '/%E1%88%B4',
    hash: 'd8f78e05d0d9bb1c16ae1e60ed405de76cfb8fdcd3e414ffe65fad563b996d66',
    signature: '10eae3f14a260bd3911cc6d008d3c576d143b05b62f09782a7a4b37f52178e44',
  },
  {
    name: 'get-vanilla',
    hash: 'bb7705b4aa3cb8e8f5e1e0b3d4c0b64030797a313c8ceee43e33117cc43eadc5',
    signature: 'e93c787ed7f371d5c6b165c1b38ede9550f4dce4144713e844b25b7192d3865d',
  },
  {
    name: 'get-vanilla-empty-query-key',
    query: 'Param1=value1',
    hash: '74828b608f939673ed5a839190452a943b0178760f258da766209b21f8ca3f86',
    signature: '49096700cbbaa5753443850f40df10f904fc2fdb544dc9512203cc77c471a9de',
  },
  {
    name: 'get-vanilla-query-order-encoded',
    query: 'Param-3=Value3&Param=Value2&%E1%88%B4=Value1',
    signedQuery: '%E1%88%B4=Value1&Param=Value2&Param-3=Value3',
    hash: '9808d6cdc8245c74e705c68350fc6a62b91778cdd613890e5d177998c02c6f53',
    signature: 'c5f1848ceec943ac2ca68ee720460c23aaae30a2300586597ada94c4a65e4787',
  },
  {
    name: 'get-vanilla-query-order-key-case',
    query: 'Param2=value2&Param1=value1',
    signedQuery: 'Param1=value1&Param2=value2',
    hash: 'b82878ecb2ab7ad194b9fe79b2946c2a36ee1627a219408089b2d774c1a0cedb',
    signature: '86012e2c9ad4d77369f5d81c11f75158aae4f895a085212cc6d3f923d300bed5',
  },
  {
    name: 'get-vanilla-query-unreserved',
    query:
      '-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz=-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz',
    hash: 'c77f27ef2b499fbfee3f0b3c88bba7057b2b31ee9b62047078a5e0d6be91fd58',
    signature: '8e76a88a7433637b12778d5592799b29ad21ecd6cf6325051c21d86f0acda2bf',
  },
  {
    name: 'get-vanilla-utf8-query',
    query: 'ሴ=bar',
    signedQuery: '%E1%88%B4=bar',
    hash: 'b2e8ae8e48ec880defebc6f6dc1d9fbc9f1856b33146f2943060ca71a50a7a77',
    signature: '0bdd809b1519ac4f0c1dc3540e2cc46bd0c7f778eda408b2ebf3b913d21ff600',
  },
  {
    name: 'get-vanilla-with-session-token',
    sessionToken: '6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267',
    hash: 'cb30434103085aa9e73780fc60dc9a9df818fd2a7b1de12a9f6f4d791f898761',
    signature: '7ff2b50b376cb4d151970630573d6291dc128cc5c2a12ffb237f73cc53f67b6c',
  },
  {
    name: 'post-sts-header-before',
    sessionToken: longToken,
    hash: '37f7ba7a2ec89e8b29a0d637bcc70d8e8d0fdba854ddfc5bc06a12398cfe8605',
    signature: '46c2e3c63c1dbe7d39f8ada16fe7f001c1f56c5791441565323677f96308871c',
  },
  {
    name: 'post-vanilla-empty-query-value',
    query: 'Param1=value1',
    hash: '98241d1c6f938789d34b92e16e08b7fc8fdaa774c5437ba30d505eedae43dd2b',
    signature: 'a9ef26247f293bffe40eeff86a0480ba8c14d31503b2e0c3399e3a16bf1a3682',
  },
  {
    name: 'post-sts-header-after',
    sessionToken: longToken,
    tokenIsAddedLater: true,
    hash: 'd27fc6fe1afc1d88b248c5ae9194ec0943a693dd6d81d8d815c88a369eb0471e',
    signature: '2ce6e6d2e0cf2f9d1b55fafec88cd20574c31dc2e7631979f71ba2310083e95b',
  },
]

export const vectors = facts.map(
  ({ name, path = '/', query = '', signedPath = path, signedQuery = query, hash, ...rest }) => {
    const method = name.split('-', 1).join().toUpperCase()
    const token =
      rest.sessionToken === undefined || rest.tokenIsAddedLater
        ? []
        : [`X-Amz-Security-Token=${encodeURIComponent(rest.sessionToken)}`]
    const signed = [
      ...(signedQuery === '' ? [] : [signedQuery]),
      'X-Amz-Algorithm=AWS4-HMAC-SHA256',
      'X-Amz-Credential=AKIDEXAMPLE%2F20150830%2Fus-east-1%2Fservice%2Faws4_request',
      'X-Amz-Date=20150830T123600Z',
      'X-Amz-Expires=3600',
      ...token,
      'X-Amz-SignedHeaders=host',
    ].join('&')
    const emptyBody = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
    return {
      ...rest,
      name,
      method,
      path,
      query,
      canonicalRequest: [method, signedPath, signed, `host:${common.host}`, '', 'host', emptyBody],
      stringToSign: [
        'AWS4-HMAC-SHA256',
        '20150830T123600Z',
        '20150830/us-east-1/service/aws4_request',
        hash,
      ],
    }
  },
)
