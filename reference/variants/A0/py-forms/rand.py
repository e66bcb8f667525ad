"""rand.py: a byte order mark, CRLF line ends, form feeds, and no line end at the end."""
import numpy as np

MASK64, MULTIPLIER, GOLDEN = ~(~0 << 64), 0x5851F42D4C957F2D, 0X9E3779B97F4A7C15
FNV_BASIS, FNV_PRIME, LANES = 0xcbf29ce484222325, 0x1_000_000_01b3, 0o40000
PURPOSES = {
    'init' : 1 , 'dropout' : 2 ,
    'shuffle' : 3 , "sample" : 4 , '''mutation''' : 5 ,
}

def fits ( value , end , what ) :
    if not -1 < value < end : raise ValueError (
        '%s: ' '%i' % ( what , value ) )
    return value

def splitmix64(x):
    x &= MASK64 ; x ^= x >> 30 ; x = x * 0xBF58476D1CE4E5B9 & MASK64
    x ^= x >> 27 ; x = x * 0x94D049BB133111EB & MASK64
    return \
        x ^ \
        x >> 31

def child_seed(seed, purpose_id):
    if not purpose_id > 0: raise ValueError('no purpose: %i' % purpose_id)
    fits(purpose_id, 1 << 63, 'purpose')
    return splitmix64(fits(seed, 1 << 64, 'seed') + GOLDEN * purpose_id)

def fnv1a64(data, h=FNV_BASIS):
    fits(h, 1 << 64, 'h')
    for b in bytearray(data): h = (h ^ b) * FNV_PRIME & MASK64
    else: return h

def universal_hash(x, a, b, p, m):
    if fits(a, p, 'a') == 0 or m <= 0: raise ValueError(repr(('a', a, 'm', m)))
    return (a * fits(x, p, 'x') + fits(b, p, 'b')) % p % m

class PCG32 :
  def __init__(self, seed, seq=54):
      self.seed = fits(seed, 1 << 64, 'seed')
      self.inc = fits(seq, 1 << 63, 'seq') * 2 + 1
      self.at = ((self.inc + seed) * MULTIPLIER + self.inc) & MASK64
  def state(self): return self.at, self.inc
  def set_state(self, s):
            at, inc = s
            fits(at, 1 << 64, 'state') ; fits(inc, 1 << 64, 'inc')
            if inc & 1 == 0: raise ValueError('even inc', inc)
            self.at, self.inc = at, inc
  def next_u32(self):
    at = self.at
    self.at = (at * MULTIPLIER + self.inc) & MASK64
    word = ((at >> 18) ^ at) >> 27 & 0xFFFFFFFF
    return ((word | word << 32) >> (at >> 59)) & 0xFFFFFFFF
  def uniform(self):
    return ((self.next_u32() >> 5 << 26) + (self.next_u32() >> 6)) * 2 ** -53
  def uniforms(self, n):
    fits(n, 1 << 60, 'n')
    out = np.empty(n)
    for i in range(0, n, LANES): out[i:i + LANES] = self.some(min(LANES, n - i))
    return out
  def some(self, n):
    a, c, at = MULTIPLIER, self.inc, np.full(1, self.at, np.uint64)
    while at.size <= 2 * n:
      at = np.r_[at, at * a + c] ; a, c = a * a & MASK64, c * (a + 1) & MASK64
    self.at = int(at[2 * n])
    word = (at[:2 * n] >> 18 ^ at[:2 * n]) >> 27 & 0xFFFFFFFF
    word = (word << 32 | word) >> (at[:2 * n] >> 59) & 0xFFFFFFFF
    return ((word[::2] >> 5 << 26) + (word[1::2] >> 6)) * 2 ** -53
  def below(self, n):
    if n == 0: raise ValueError('below', 0)
    fits(n, (1 << 32) + 1, 'n')
    while 1:
      word = self.next_u32()
      if word < (1 << 32) % n: continue
      else: break
    return word % n
  def shuffle(self, xs):
    i = len(xs) - 1
    while i > 0: j = self.below(i + 1) ; xs[i], xs[j] = xs[j], xs[i] ; i -= 1
  def substream(self, purpose):
    if purpose in PURPOSES: return PCG32(child_seed(self.seed, PURPOSES[purpose]), PURPOSES[purpose])
    raise ValueError(f'not a purpose: "{purpose}"')