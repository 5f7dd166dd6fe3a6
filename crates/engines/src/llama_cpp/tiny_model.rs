//! Tiny but real models for `llama-server`.
//!
//! A verifier of servers needs servers to verify, on machines that have neither a graphics card nor a model. The files
//! written here are a few hundred kilobytes each, are made in milliseconds out of nothing, and are not mocks: the
//! unmodified server maps, warms up and runs them, and drafts and accepts tokens with them, so every log line, endpoint
//! field and counter the engine model reads comes from the engine itself. The same bytes come out on every machine.
//!
//! # How they speak
//!
//! Every token has a random embedding, and every block of the trunk adds next to nothing to it, since its output
//! projections are about zero. What reaches the language head is therefore the (normalised) embedding of the current
//! token. The head's row for a token is the embedding of the one token that precedes it, so that the next token is a
//! fixed function of the current one: the *alphabet* (Latin letters, the space, some pairs of letters) in one long
//! cycle. The rows of all other tokens are zero and never win, so the output is readable and never ends by itself. A
//! token outside the alphabet has the embedding of a letter, so that any prompt leads into the cycle. How often a
//! draft is right is then a matter of how many rows of its head are exchanged.
//!
//! # Where the keys come from
//!
//! The container is GGUF version 3 (`docs/gguf.md` of ggml). Names and types of keys and tensors are those of
//! llama.cpp: `constants.py` of `gguf-py` 0.19.0, and `qwen3.cpp` and `qwen35.cpp` in `src/models`, which read them.
//! The last column is what `llama-server` b10434 did with a file that lacked the key, tried one key at a time; `ARCH`
//! is the architecture.
//!
//! | key | what it is here | without it |
//! | --- | --- | --- |
//! | `general.architecture` | `qwen3` or `qwen35` | refused: `unknown model architecture: ''` |
//! | `general.name`, `general.type`, `general.size_label` | for people | no difference |
//! | `ARCH.block_count` | blocks, predictors included | refused: `key not found in model` |
//! | `ARCH.context_length` | `n_ctx_train`, to which slots are capped | refused: `key not found in model` |
//! | `ARCH.embedding_length` | `EMBEDDING` | refused: `key not found in model` |
//! | `ARCH.feed_forward_length` | `FEED_FORWARD` | refused: `ffn_gate.weight` `has wrong shape` |
//! | `ARCH.attention.head_count` | `HEADS` | refused: `attn_q.weight` `has wrong shape` |
//! | `ARCH.attention.head_count_kv` | `KV_HEADS` | refused: `attn_k.weight` `has wrong shape` |
//! | `ARCH.attention.key_length`, `.value_length` | `HEAD_SIZE` | the same, as embedding by heads |
//! | `ARCH.attention.layer_norm_rms_epsilon` | 1e-6 | refused: `key not found in model` |
//! | `ARCH.rope.freq_base`, `.dimension_count` | 10000, `HEAD_SIZE` | the same by default |
//! | `qwen35.rope.dimension_sections` | `ROPE_SECTIONS` | refused: `key not found in model` |
//! | `qwen35.ssm.*` (five keys) | shape of linear attention | refused: `key not found in model` |
//! | `qwen35.full_attention_interval` | `FULL_ATTENTION_INTERVAL` | the same by default |
//! | `qwen35.nextn_predict_layers` | how many last blocks predict | refused: `blk.4.ssm_conv1d.weight` `not found` |
//! | `tokenizer.ggml.model` | `gpt2`, byte-level pairs | refused: `key not found in model` |
//! | `tokenizer.ggml.pre` | `qwen2` | warned: `missing pre-tokenizer type, using: 'default'` |
//! | `tokenizer.ggml.tokens` | bytes, pairs, marks | refused: `cannot find tokenizer vocab in model file` |
//! | `tokenizer.ggml.token_type` | what each token is | no difference seen |
//! | `tokenizer.ggml.merges` | how pairs are made | refused: `cannot find tokenizer merges in model file` |
//! | `tokenizer.ggml.eos_token_id`, `.bos_token_id` | the marks | token 11, a control character, is taken |
//! | `tokenizer.ggml.padding_token_id`, `.add_bos_token` | end of text, no | no difference seen |
//! | `tokenizer.chat_template` | text of our own | a built-in one |

/// Every tensor starts at a multiple of this many bytes. It is what GGUF takes for granted in a file that has no
/// `general.alignment`.
const ALIGNMENT: usize = 32;

/// Width of the residual stream.
const EMBEDDING: usize = 64;
/// Query heads.
const HEADS: usize = 2;
/// Key and value heads, fewer than query heads as in the models people serve.
const KV_HEADS: usize = 1;
/// Width of a head: one block of `q8_0`, so that the KV cache can be quantized.
const HEAD_SIZE: usize = 32;
/// Width of the feed-forward layers.
const FEED_FORWARD: usize = 128;

/// Width of the state of a linear-attention head.
const STATE_SIZE: usize = 32;
/// Key heads of linear attention.
const STATE_KEYS: usize = 1;
/// Value heads of linear attention.
const STATE_VALUES: usize = 2;
/// Tokens that the convolution before linear attention sees.
const CONVOLUTION: usize = 4;
/// Every so many blocks of the hybrid has full attention; the others have linear attention.
const FULL_ATTENTION_INTERVAL: usize = 4;
/// How the pairs of a head's dimensions are divided among the axes of a position; half of [`HEAD_SIZE`] in all.
const ROPE_SECTIONS: [i32; 4] = [6, 5, 5, 0];

/// Size of the random weights that nothing depends on.
const WEAK: f32 = 0.02;
/// Size of the random weights through which a block adds to the residual stream: about zero, and not zero, so that a
/// number that a server computes differently can be seen to differ.
const FAINT: f32 = 0.001;
/// Size of the language head. The right token gets a logit of about 16, the others of about 0 ± 2: enough to be
/// nearly certain at temperature 1.
const HEAD_GAIN: f32 = 0.25;

/// Seed of embeddings and alphabet, common to all models, as a draft that speaks another language drafts in vain.
const LANGUAGE_SEED: u64 = 7;

/// Pairs of letters that are tokens, so that the tokenizer has merges to do.
const PAIRS: [&str; 44] = [
    "al", "an", "ar", "as", "at", "ce", "ch", "co", "de", "ea", "ed", "en", "er", "es", "ha", "he", "hi", "ic", "in",
    "io", "is", "it", "le", "li", "me", "nd", "ne", "ng", "nt", "of", "on", "or", "ou", "ra", "re", "ri", "ro", "se",
    "st", "te", "th", "ti", "to", "ve",
];

const END_OF_TEXT: &str = "<|endoftext|>";
const START_OF_TURN: &str = "<|im_start|>";
const END_OF_TURN: &str = "<|im_end|>";

/// Turns between the marks the vocabulary has, and nothing else: no tools, no thinking.
const CHAT_TEMPLATE: &str = "{% for turn in messages %}<|im_start|>{{ turn.role }}\n\
    {{ turn.content }}<|im_end|>\n\
    {% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n\
    {% endif %}";

/// Which tiny model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TinyModel {
    /// A dense model (`qwen3`) of four blocks, trained for 2048 tokens.
    Dense,
    /// A smaller draft for [`TinyModel::Dense`]: one block, right about 70 % of the time, trained for 1024 tokens. A
    /// completion that grows beyond these fails with a 500 (b10434: `failed to process speculative batch`).
    Draft,
    /// A dense model of one block with 200 tokens more: no draft for the others, as its vocabulary is not theirs.
    OtherVocabulary,
    /// A hybrid of linear and full attention (`qwen35`) with one multi-token-prediction (`nextn`) block, of whose
    /// drafts about half are accepted.
    Mtp,
    /// The same hybrid without that block.
    Hybrid,
}

impl TinyModel {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Dense, Self::Draft, Self::OtherVocabulary, Self::Mtp, Self::Hybrid];

    /// The name of its file, which tells what it is.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Dense => "tiny-qwen3.gguf",
            Self::Draft => "tiny-qwen3-draft.gguf",
            Self::OtherVocabulary => "tiny-qwen3-othervocab.gguf",
            Self::Mtp => "tiny-qwen35-mtp.gguf",
            Self::Hybrid => "tiny-qwen35.gguf",
        }
    }

    /// The whole GGUF file: the same bytes on every machine.
    pub fn bytes(self) -> Vec<u8> {
        self.gguf().encode()
    }

    fn recipe(self) -> Recipe {
        let dense = Recipe {
            architecture: Architecture::Qwen3,
            blocks: 4,
            trained_context: 2048,
            spare_tokens: 0,
            mistakes: Mistakes::NONE,
            predictor: None,
            seed: 1,
        };
        let hybrid = Recipe { architecture: Architecture::Qwen35, ..dense };
        match self {
            Self::Dense => dense,
            Self::Draft => {
                let mistakes = Mistakes { percentage: 30, seed: 1 };
                Recipe { blocks: 1, trained_context: 1024, mistakes, seed: 5, ..dense }
            }
            Self::OtherVocabulary => Recipe { blocks: 1, spare_tokens: 200, seed: 6, ..dense },
            // Three tokens are drafted at a time, and those after a wrong one are in vain: 0.7, 0.7² and 0.7³ of them
            // are accepted, half on average.
            Self::Mtp => Recipe { predictor: Some(Mistakes { percentage: 30, seed: 12 }), ..hybrid },
            Self::Hybrid => hybrid,
        }
    }

    fn gguf(self) -> Gguf {
        let recipe = self.recipe();
        let vocabulary = Vocabulary::new(recipe.spare_tokens);
        let name = self.file_name().trim_end_matches(".gguf");
        let metadata = [recipe.metadata(name), vocabulary.metadata()].concat();
        Gguf { metadata, tensors: recipe.tensors(&vocabulary) }
    }
}

/// The architectures of llama.cpp that are used here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Architecture {
    /// Attention and feed-forward in every block.
    Qwen3,
    /// Gated delta nets, with full attention in every fourth block.
    Qwen35,
}

impl Architecture {
    fn name(self) -> &'static str {
        match self {
            Self::Qwen3 => "qwen3",
            Self::Qwen35 => "qwen35",
        }
    }
}

/// After which tokens a language head is wrong.
#[derive(Debug, Clone, Copy)]
struct Mistakes {
    /// How much of the alphabet.
    percentage: usize,
    /// Seed of the choice.
    seed: u64,
}

impl Mistakes {
    const NONE: Self = Self { percentage: 0, seed: 0 };
}

/// What tells one tiny model from another.
#[derive(Debug, Clone, Copy)]
struct Recipe {
    architecture: Architecture,
    /// Blocks of the trunk.
    blocks: usize,
    /// Tokens of context that the file says the model was trained for.
    trained_context: usize,
    /// Tokens that only make the vocabulary longer.
    spare_tokens: usize,
    /// What the model gets wrong.
    mistakes: Mistakes,
    /// What its multi-token-prediction block gets wrong, if it has one.
    predictor: Option<Mistakes>,
    /// Seed of the weights of the blocks.
    seed: u64,
}

impl Recipe {
    /// The keys of the model itself.
    fn metadata(&self, name: &str) -> Vec<Entry> {
        let architecture = self.architecture.name();
        let own = |key: &str, value: Value| (format!("{architecture}.{key}"), value);
        let count = |key: &str, value: usize| own(key, Value::U32(value as u32));
        let predictors = usize::from(self.predictor.is_some());
        let mut entries = vec![
            entry("general.architecture", Value::text(architecture)),
            entry("general.name", Value::text(name)),
            entry("general.type", Value::text("model")),
            entry("general.size_label", Value::text("tiny")),
            count("block_count", self.blocks + predictors),
            count("context_length", self.trained_context),
            count("embedding_length", EMBEDDING),
            count("feed_forward_length", FEED_FORWARD),
            count("attention.head_count", HEADS),
            count("attention.head_count_kv", KV_HEADS),
            count("attention.key_length", HEAD_SIZE),
            count("attention.value_length", HEAD_SIZE),
            own("attention.layer_norm_rms_epsilon", Value::F32(1e-6)),
            own("rope.freq_base", Value::F32(10_000.0)),
            count("rope.dimension_count", HEAD_SIZE),
        ];
        if self.architecture == Architecture::Qwen35 {
            entries.extend([
                own("rope.dimension_sections", Value::Integers(ROPE_SECTIONS.to_vec())),
                count("ssm.conv_kernel", CONVOLUTION),
                count("ssm.inner_size", STATE_SIZE * STATE_VALUES),
                count("ssm.state_size", STATE_SIZE),
                count("ssm.time_step_rank", STATE_VALUES),
                count("ssm.group_count", STATE_KEYS),
                count("full_attention_interval", FULL_ATTENTION_INTERVAL),
            ]);
        }
        if predictors > 0 {
            entries.push(count("nextn_predict_layers", predictors));
        }
        entries
    }

    /// The weights.
    fn tensors(&self, vocabulary: &Vocabulary) -> Vec<Tensor> {
        let language = Language::new(vocabulary.alphabet.clone());
        let tokens = vocabulary.tokens.len();
        let mut weights = Weights { tensors: Vec::new(), random: Random::new(self.seed) };
        weights.matrix("token_embd.weight", EMBEDDING, &language.embeddings(tokens));
        weights.ones("output_norm.weight", EMBEDDING);
        weights.matrix("output.weight", EMBEDDING, &language.head(tokens, self.mistakes));
        for index in 0..self.blocks {
            let block = format!("blk.{index}");
            match self.architecture {
                Architecture::Qwen3 => weights.dense_block(&block),
                Architecture::Qwen35 if (index + 1) % FULL_ATTENTION_INTERVAL == 0 => weights.gated_block(&block),
                Architecture::Qwen35 => weights.linear_block(&block),
            }
        }
        if let Some(mistakes) = self.predictor {
            // The server takes the blocks after the trunk for predictors.
            let block = format!("blk.{}", self.blocks);
            weights.gated_block(&block);
            weights.predictor(&block, &language.head(tokens, mistakes));
        }
        weights.tensors
    }
}

/// The tensors of a model as they are made.
struct Weights {
    tensors: Vec<Tensor>,
    random: Random,
}

impl Weights {
    /// A block of `qwen3`.
    fn dense_block(&mut self, block: &str) {
        self.ones(&format!("{block}.attn_norm.weight"), EMBEDDING);
        self.ones(&format!("{block}.ffn_norm.weight"), EMBEDDING);
        self.attention(block, HEAD_SIZE * HEADS);
        self.feed_forward(block);
    }

    /// A block of `qwen35` with full attention. Its queries bring a gate along, so they are twice as wide.
    fn gated_block(&mut self, block: &str) {
        self.ones(&format!("{block}.attn_norm.weight"), EMBEDDING);
        self.ones(&format!("{block}.post_attention_norm.weight"), EMBEDDING);
        self.attention(block, 2 * HEAD_SIZE * HEADS);
        self.feed_forward(block);
    }

    /// A block of `qwen35` with linear attention (a gated delta net).
    fn linear_block(&mut self, block: &str) {
        let keys = STATE_SIZE * STATE_KEYS;
        let values = STATE_SIZE * STATE_VALUES;
        let mixed = 2 * keys + values;
        self.ones(&format!("{block}.attn_norm.weight"), EMBEDDING);
        self.ones(&format!("{block}.post_attention_norm.weight"), EMBEDDING);
        self.noise(&format!("{block}.attn_qkv.weight"), EMBEDDING, mixed, WEAK);
        self.noise(&format!("{block}.attn_gate.weight"), EMBEDDING, values, WEAK);
        let convolution = self.random.normals(CONVOLUTION * mixed, 0.1);
        self.full(&format!("{block}.ssm_conv1d.weight"), &[CONVOLUTION, mixed], &convolution);
        // The state must fade (a negative rate), or it grows with every token.
        self.full(&format!("{block}.ssm_dt.bias"), &[STATE_VALUES], &[0.1; STATE_VALUES]);
        self.full(&format!("{block}.ssm_a"), &[STATE_VALUES], &[-1.0; STATE_VALUES]);
        self.noise(&format!("{block}.ssm_beta.weight"), EMBEDDING, STATE_VALUES, WEAK);
        self.noise(&format!("{block}.ssm_alpha.weight"), EMBEDDING, STATE_VALUES, WEAK);
        self.ones(&format!("{block}.ssm_norm.weight"), STATE_SIZE);
        self.noise(&format!("{block}.ssm_out.weight"), values, EMBEDDING, FAINT);
        self.feed_forward(block);
    }

    fn attention(&mut self, block: &str, queries: usize) {
        self.noise(&format!("{block}.attn_q.weight"), EMBEDDING, queries, WEAK);
        self.noise(&format!("{block}.attn_k.weight"), EMBEDDING, HEAD_SIZE * KV_HEADS, WEAK);
        self.noise(&format!("{block}.attn_v.weight"), EMBEDDING, HEAD_SIZE * KV_HEADS, WEAK);
        self.noise(&format!("{block}.attn_output.weight"), HEAD_SIZE * HEADS, EMBEDDING, FAINT);
        self.ones(&format!("{block}.attn_q_norm.weight"), HEAD_SIZE);
        self.ones(&format!("{block}.attn_k_norm.weight"), HEAD_SIZE);
    }

    fn feed_forward(&mut self, block: &str) {
        self.noise(&format!("{block}.ffn_gate.weight"), EMBEDDING, FEED_FORWARD, WEAK);
        self.noise(&format!("{block}.ffn_up.weight"), EMBEDDING, FEED_FORWARD, WEAK);
        self.noise(&format!("{block}.ffn_down.weight"), FEED_FORWARD, EMBEDDING, FAINT);
    }

    /// What a block needs beyond full attention to predict the token after the next.
    fn predictor(&mut self, block: &str, head: &[f32]) {
        // It is given the embedding of the next token and the hidden state, side by side. The former tells all.
        let mut join = vec![0.0; EMBEDDING * 2 * EMBEDDING];
        for row in 0..EMBEDDING {
            join[row * 2 * EMBEDDING + row] = 1.0;
        }
        self.matrix(&format!("{block}.nextn.eh_proj.weight"), 2 * EMBEDDING, &join);
        self.ones(&format!("{block}.nextn.enorm.weight"), EMBEDDING);
        self.ones(&format!("{block}.nextn.hnorm.weight"), EMBEDDING);
        self.ones(&format!("{block}.nextn.shared_head_norm.weight"), EMBEDDING);
        self.matrix(&format!("{block}.nextn.shared_head_head.weight"), EMBEDDING, head);
    }

    /// A random matrix in half precision, of `outputs` rows.
    fn noise(&mut self, name: &str, inputs: usize, outputs: usize, scale: f32) {
        let values = self.random.normals(inputs * outputs, scale);
        self.matrix(name, inputs, &values);
    }

    /// A matrix in half precision, given row by row.
    fn matrix(&mut self, name: &str, inputs: usize, values: &[f32]) {
        self.tensors.push(Tensor {
            name: name.to_owned(),
            shape: vec![inputs, values.len() / inputs],
            kind: TensorKind::F16,
            data: values.iter().flat_map(|&value| half(value).to_le_bytes()).collect(),
        });
    }

    /// The weights of a norm that changes nothing.
    fn ones(&mut self, name: &str, length: usize) {
        self.full(name, &[length], &vec![1.0; length]);
    }

    /// A tensor in full precision, in which llama.cpp's converter keeps norms, convolutions and biases.
    fn full(&mut self, name: &str, shape: &[usize], values: &[f32]) {
        self.tensors.push(Tensor {
            name: name.to_owned(),
            shape: shape.to_vec(),
            kind: TensorKind::F32,
            data: values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        });
    }
}

/// What the models say: which token follows which, and the embeddings that make it so.
struct Language {
    /// The tokens that are ever said, ascending.
    alphabet: Vec<usize>,
    /// For each place in the alphabet, the place of the one that follows. All places are on one cycle.
    next: Vec<usize>,
    /// For each place in the alphabet, its embedding.
    rows: Vec<Vec<f32>>,
}

impl Language {
    fn new(alphabet: Vec<usize>) -> Self {
        let mut random = Random::new(LANGUAGE_SEED);
        let rows = alphabet.iter().map(|_| random.normals(EMBEDDING, 1.0)).collect();
        let cycle = random.permutation(alphabet.len());
        let mut next = vec![0; alphabet.len()];
        for (&place, &follower) in cycle.iter().zip(cycle.iter().cycle().skip(1)) {
            next[place] = follower;
        }
        Self { alphabet, next, rows }
    }

    /// The place in the alphabet whose embedding a token has: its own, or a borrowed one.
    fn place(&self, token: usize) -> usize {
        self.alphabet.binary_search(&token).unwrap_or(token % self.alphabet.len())
    }

    /// The embeddings of all tokens, row by row.
    fn embeddings(&self, tokens: usize) -> Vec<f32> {
        (0..tokens).flat_map(|token| &self.rows[self.place(token)]).copied().collect()
    }

    /// A language head, row by row: the row of a token is the embedding of the one it follows, or zero.
    fn head(&self, tokens: usize, mistakes: Mistakes) -> Vec<f32> {
        let mut head = vec![0.0; tokens * EMBEDDING];
        for (row, follower) in self.rows.iter().zip(self.next_with_mistakes(mistakes)) {
            let start = self.alphabet[follower] * EMBEDDING;
            for (weight, value) in head[start..start + EMBEDDING].iter_mut().zip(row) {
                *weight = value * HEAD_GAIN;
            }
        }
        head
    }

    /// [`Language::next`] with some followers exchanged among each other, none of which stays as it was.
    fn next_with_mistakes(&self, mistakes: Mistakes) -> Vec<usize> {
        let mut next = self.next.clone();
        let mut wrong = Random::new(mistakes.seed).permutation(next.len());
        wrong.truncate(next.len() * mistakes.percentage / 100);
        for pair in wrong.windows(2) {
            next.swap(pair[0], pair[1]);
        }
        next
    }
}

/// A byte-level vocabulary in the manner of GPT-2.
struct Vocabulary {
    tokens: Vec<String>,
    kinds: Vec<TokenKind>,
    merges: Vec<String>,
    /// The tokens that are readable: letters, the space and pairs of letters, ascending.
    alphabet: Vec<usize>,
    end_of_text: usize,
    end_of_turn: usize,
}

/// What a token is, with the numbers of llama.cpp (`gguf-py`, `TokenType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    Normal = 1,
    Control = 3,
    UserDefined = 4,
}

impl Vocabulary {
    fn new(spare_tokens: usize) -> Self {
        let mut vocabulary = Self {
            tokens: Vec::new(),
            kinds: Vec::new(),
            merges: Vec::new(),
            alphabet: Vec::new(),
            end_of_text: 0,
            end_of_turn: 0,
        };
        // The number of a byte's token is the byte.
        for (byte, symbol) in (0..=u8::MAX).zip(byte_symbols()) {
            let token = vocabulary.push(&symbol.to_string(), TokenKind::Normal);
            if byte.is_ascii_alphabetic() || byte == b' ' {
                vocabulary.alphabet.push(token);
            }
        }
        for pair in PAIRS {
            let token = vocabulary.push(pair, TokenKind::Normal);
            vocabulary.alphabet.push(token);
            let (left, right) = pair.split_at(1);
            vocabulary.merges.push(format!("{left} {right}"));
        }
        for number in 0..spare_tokens {
            vocabulary.push(&format!("<|spare_{number}|>"), TokenKind::UserDefined);
        }
        vocabulary.end_of_text = vocabulary.push(END_OF_TEXT, TokenKind::Control);
        vocabulary.push(START_OF_TURN, TokenKind::Control);
        vocabulary.end_of_turn = vocabulary.push(END_OF_TURN, TokenKind::Control);
        vocabulary
    }

    fn push(&mut self, text: &str, kind: TokenKind) -> usize {
        self.tokens.push(text.to_owned());
        self.kinds.push(kind);
        self.tokens.len() - 1
    }

    /// The keys of the tokenizer.
    fn metadata(&self) -> Vec<Entry> {
        let kinds = self.kinds.iter().map(|&kind| kind as i32).collect();
        vec![
            entry("tokenizer.ggml.model", Value::text("gpt2")),
            entry("tokenizer.ggml.pre", Value::text("qwen2")),
            entry("tokenizer.ggml.tokens", Value::Texts(self.tokens.clone())),
            entry("tokenizer.ggml.token_type", Value::Integers(kinds)),
            entry("tokenizer.ggml.merges", Value::Texts(self.merges.clone())),
            entry("tokenizer.ggml.eos_token_id", Value::U32(self.end_of_turn as u32)),
            entry("tokenizer.ggml.bos_token_id", Value::U32(self.end_of_text as u32)),
            entry("tokenizer.ggml.padding_token_id", Value::U32(self.end_of_text as u32)),
            entry("tokenizer.ggml.add_bos_token", Value::Bool(false)),
            entry("tokenizer.chat_template", Value::text(CHAT_TEMPLATE)),
        ]
    }
}

/// The character that stands for each byte in a byte-level vocabulary: itself if it can be seen, else the next one
/// from U+0100 on.
fn byte_symbols() -> impl Iterator<Item = char> {
    let mut invisible = '\u{100}'..;
    (0..=u8::MAX).filter_map(move |byte| match byte {
        b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF => Some(char::from(byte)),
        _ => invisible.next(),
    })
}

/// A file in the GGUF format, version 3.
struct Gguf {
    metadata: Vec<Entry>,
    tensors: Vec<Tensor>,
}

/// A key and its value.
type Entry = (String, Value);

fn entry(key: &str, value: Value) -> Entry {
    (key.to_owned(), value)
}

/// A value of the metadata, of the types that are needed here.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    U32(u32),
    F32(f32),
    Bool(bool),
    Text(String),
    Texts(Vec<String>),
    Integers(Vec<i32>),
}

impl Value {
    fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// The numbers GGUF gives to types of metadata.
mod value_type {
    pub const U32: u32 = 4;
    pub const I32: u32 = 5;
    pub const F32: u32 = 6;
    pub const BOOL: u32 = 7;
    pub const STRING: u32 = 8;
    pub const ARRAY: u32 = 9;
}

/// A tensor and its bytes.
struct Tensor {
    name: String,
    /// Lengths, the one that is contiguous in the file first.
    shape: Vec<usize>,
    kind: TensorKind,
    data: Vec<u8>,
}

/// The type of a tensor's numbers, with the numbers ggml gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TensorKind {
    F32 = 0,
    F16 = 1,
}

impl Gguf {
    /// The whole file. Lengths are 64 bits wide, numbers are little-endian.
    fn encode(&self) -> Vec<u8> {
        let mut file = Vec::new();
        file.extend_from_slice(b"GGUF");
        put_u32(&mut file, 3);
        put_length(&mut file, self.tensors.len());
        put_length(&mut file, self.metadata.len());
        for (key, value) in &self.metadata {
            put_text(&mut file, key);
            put_value(&mut file, value);
        }
        let mut offset = 0;
        for tensor in &self.tensors {
            put_text(&mut file, &tensor.name);
            put_u32(&mut file, tensor.shape.len() as u32);
            for &length in &tensor.shape {
                put_length(&mut file, length);
            }
            put_u32(&mut file, tensor.kind as u32);
            // Counted from the end of the header.
            put_length(&mut file, offset);
            offset += tensor.data.len().next_multiple_of(ALIGNMENT);
        }
        pad(&mut file);
        for tensor in &self.tensors {
            file.extend_from_slice(&tensor.data);
            pad(&mut file);
        }
        file
    }
}

fn put_value(file: &mut Vec<u8>, value: &Value) {
    match value {
        Value::U32(number) => {
            put_u32(file, value_type::U32);
            put_u32(file, *number);
        }
        Value::F32(number) => {
            put_u32(file, value_type::F32);
            file.extend_from_slice(&number.to_le_bytes());
        }
        Value::Bool(truth) => {
            put_u32(file, value_type::BOOL);
            file.push(u8::from(*truth));
        }
        Value::Text(text) => {
            put_u32(file, value_type::STRING);
            put_text(file, text);
        }
        Value::Texts(texts) => {
            put_u32(file, value_type::ARRAY);
            put_u32(file, value_type::STRING);
            put_length(file, texts.len());
            texts.iter().for_each(|text| put_text(file, text));
        }
        Value::Integers(numbers) => {
            put_u32(file, value_type::ARRAY);
            put_u32(file, value_type::I32);
            put_length(file, numbers.len());
            numbers.iter().for_each(|number| file.extend_from_slice(&number.to_le_bytes()));
        }
    }
}

fn put_u32(file: &mut Vec<u8>, number: u32) {
    file.extend_from_slice(&number.to_le_bytes());
}

fn put_length(file: &mut Vec<u8>, length: usize) {
    file.extend_from_slice(&(length as u64).to_le_bytes());
}

fn put_text(file: &mut Vec<u8>, text: &str) {
    put_length(file, text.len());
    file.extend_from_slice(text.as_bytes());
}

fn pad(file: &mut Vec<u8>) {
    file.resize(file.len().next_multiple_of(ALIGNMENT), 0);
}

/// The half-precision number (IEEE 754 binary16) nearest to `value`, as bits; of two equally near, the even one.
fn half(value: f32) -> u16 {
    /// Bits of precision that half precision does not have.
    const LOST: u32 = 13;
    /// 2⁻¹⁴, the smallest normal number of half precision.
    const SMALLEST_NORMAL: u32 = 0x3880_0000;
    /// 65520, halfway between the largest number and what would come next.
    const OVERFLOW: u32 = 0x477F_F000;
    const INFINITY: u32 = 0x7F80_0000;

    let bits = value.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let magnitude = bits & 0x7FFF_FFFF;
    let exponent = magnitude >> 23;
    let rounded = if magnitude > INFINITY {
        0x7E00
    } else if magnitude >= OVERFLOW {
        0x7C00
    } else if magnitude >= SMALLEST_NORMAL {
        // The exponent counts from -15 instead of -127. A fraction that rounds up to 2 carries into it, as it should.
        shift_to_even(magnitude - (112 << 23), LOST)
    } else if exponent >= 102 {
        // A multiple of 2⁻²⁴ smaller than any normal number: the implied leading one becomes explicit.
        shift_to_even(magnitude & 0x007F_FFFF | 0x0080_0000, 126 - exponent)
    } else {
        // Below half of 2⁻²⁴.
        0
    };
    sign | rounded as u16
}

/// `value / 2^shift`, rounded to the nearest integer, of two equally near to the even one.
fn shift_to_even(value: u32, shift: u32) -> u32 {
    let below_half = (1 << (shift - 1)) - 1;
    let odd = (value >> shift) & 1;
    (value + below_half + odd) >> shift
}

/// SplitMix64 (Steele, Lea and Flood, 2014): small, and the same everywhere and for ever.
struct Random {
    state: u64,
}

impl Random {
    fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// The numbers below `length` in random order (Fisher and Yates).
    fn permutation(&mut self, length: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..length).collect();
        for last in (1..length).rev() {
            order.swap(last, self.below(last + 1));
        }
        order
    }

    /// Numbers about zero with the given standard deviation, bell-shaped enough: sums of four uniform ones. The usual
    /// ways to a normal distribution need logarithms, whose last bit differs between machines.
    fn normals(&mut self, count: usize, deviation: f32) -> Vec<f32> {
        /// The sum's average.
        const CENTRE: f32 = 2.0 * 65_535.0;
        /// The sum's standard deviation, 2¹⁶ / √3.
        const SPREAD: f32 = 37_837.227;
        let scale = deviation / SPREAD;
        (0..count)
            .map(|_| {
                let bits = self.next();
                let sum: u32 = (0..4).map(|part| (bits >> (16 * part)) as u32 & 0xFFFF).sum();
                (sum as f32 - CENTRE) * scale
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::ops::Range;

    use super::*;

    /// What a reader finds in a file.
    struct Parsed {
        version: u32,
        metadata: Vec<(String, u32)>,
        /// Name, lengths, type and place in the file.
        tensors: Vec<(String, Vec<u64>, u32, Range<usize>)>,
    }

    struct Reader<'a> {
        file: &'a [u8],
        at: usize,
    }

    impl<'a> Reader<'a> {
        fn bytes(&mut self, count: usize) -> &'a [u8] {
            self.at += count;
            &self.file[self.at - count..self.at]
        }

        fn u32(&mut self) -> u32 {
            u32::from_le_bytes(self.bytes(4).try_into().unwrap())
        }

        fn u64(&mut self) -> u64 {
            u64::from_le_bytes(self.bytes(8).try_into().unwrap())
        }

        fn text(&mut self) -> String {
            let length = self.u64() as usize;
            String::from_utf8(self.bytes(length).to_vec()).unwrap()
        }

        fn skip_value(&mut self, kind: u32) {
            match kind {
                value_type::U32 | value_type::I32 | value_type::F32 => drop(self.bytes(4)),
                value_type::BOOL => assert!(self.bytes(1)[0] <= 1),
                value_type::STRING => drop(self.text()),
                value_type::ARRAY => {
                    let element = self.u32();
                    (0..self.u64()).for_each(|_| self.skip_value(element));
                }
                _ => panic!("a value of type {kind}"),
            }
        }
    }

    fn parse(file: &[u8]) -> Parsed {
        let mut reader = Reader { file, at: 0 };
        assert_eq!(reader.bytes(4), b"GGUF");
        let version = reader.u32();
        let tensors = reader.u64();
        let entries = reader.u64();
        let metadata = (0..entries)
            .map(|_| {
                let key = reader.text();
                let kind = reader.u32();
                reader.skip_value(kind);
                (key, kind)
            })
            .collect();
        let infos: Vec<_> = (0..tensors)
            .map(|_| {
                let name = reader.text();
                let dimensions = reader.u32();
                let shape: Vec<u64> = (0..dimensions).map(|_| reader.u64()).collect();
                (name, shape, reader.u32(), reader.u64() as usize)
            })
            .collect();
        let base = reader.at.next_multiple_of(ALIGNMENT);
        let tensors = infos
            .into_iter()
            .map(|(name, shape, kind, offset)| {
                let width = if kind == TensorKind::F32 as u32 { 4 } else { 2 };
                let length = shape.iter().product::<u64>() as usize * width;
                (name, shape, kind, base + offset..base + offset + length)
            })
            .collect();
        Parsed { version, metadata, tensors }
    }

    /// The value of a half-precision number, worked out from the definition.
    fn value_of_half(bits: u16) -> f32 {
        let exponent = i32::from(bits >> 10 & 0x1F);
        let fraction = f32::from(bits & 0x3FF);
        let magnitude = match exponent {
            0 => fraction * 2_f32.powi(-24),
            _ => (1024.0 + fraction) * 2_f32.powi(exponent - 25),
        };
        if bits & 0x8000 == 0 { magnitude } else { -magnitude }
    }

    /// The matrix of a model as a server reads it, row by row.
    fn matrix(gguf: &Gguf, name: &str) -> Vec<Vec<f32>> {
        let tensor = gguf.tensors.iter().find(|tensor| tensor.name == name).unwrap();
        let values: Vec<f32> =
            tensor.data.chunks(2).map(|bytes| value_of_half(u16::from_le_bytes(bytes.try_into().unwrap()))).collect();
        values.chunks(tensor.shape[0]).map(<[f32]>::to_vec).collect()
    }

    /// For each token, the one that a head says next and by how much its logit exceeds the second.
    fn says(embeddings: &[Vec<f32>], head: &[Vec<f32>]) -> Vec<(usize, f32)> {
        let next = |embedding: &Vec<f32>| {
            let size = (embedding.iter().map(|value| value * value).sum::<f32>() / EMBEDDING as f32).sqrt();
            let mut logits: Vec<(usize, f32)> = head
                .iter()
                .map(|row| row.iter().zip(embedding).map(|(left, right)| left * right).sum::<f32>() / size)
                .enumerate()
                .collect();
            logits.sort_by(|left, right| right.1.total_cmp(&left.1));
            (logits[0].0, logits[0].1 - logits[1].1)
        };
        embeddings.iter().map(next).collect()
    }

    #[test]
    fn the_header_reads_back() {
        for model in TinyModel::ALL {
            let gguf = model.gguf();
            let file = gguf.encode();
            let parsed = parse(&file);
            assert_eq!(parsed.version, 3);
            assert_eq!(parsed.metadata[0], ("general.architecture".to_owned(), value_type::STRING));
            let keys: HashSet<_> = parsed.metadata.iter().map(|(key, _)| key).collect();
            assert_eq!(keys.len(), gguf.metadata.len(), "{model:?}: every key once");
            assert!(!keys.iter().any(|key| *key == "general.alignment"), "the format's own alignment holds");
            assert_eq!(parsed.tensors.len(), gguf.tensors.len());
        }
    }

    #[test]
    fn every_tensor_lies_aligned_inside_the_file_and_apart_from_the_others() {
        for model in TinyModel::ALL {
            let gguf = model.gguf();
            let file = gguf.encode();
            let mut end = 0;
            for ((name, shape, kind, place), tensor) in parse(&file).tensors.into_iter().zip(&gguf.tensors) {
                assert_eq!(name, tensor.name);
                assert_eq!(kind, tensor.kind as u32);
                assert!(shape.iter().map(|&length| length as usize).eq(tensor.shape.iter().copied()), "{name}");
                assert_eq!(place.start % ALIGNMENT, 0, "{model:?} {name}");
                assert!(place.start >= end && place.end <= file.len(), "{model:?} {name} at {place:?}");
                assert_eq!(file[place.clone()], tensor.data, "{model:?} {name}");
                end = place.end;
            }
            assert_eq!(file.len(), end.next_multiple_of(ALIGNMENT), "{model:?}: nothing after the last tensor");
        }
    }

    #[test]
    fn the_files_never_change() {
        // Recordings of servers name sizes and parameter counts of these files. Whoever changes a model changes this.
        let sums = TinyModel::ALL.map(|model| {
            let file = model.gguf().encode();
            let fnv = file
                .iter()
                .fold(0xCBF2_9CE4_8422_2325, |sum: u64, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3));
            (file.len(), fnv)
        });
        assert_eq!(
            sums,
            [
                (384_448, 0x9f83_4dfe_2943_d55f),
                (159_040, 0x871f_78bd_9d4c_5aaa),
                (215_136, 0x8ec8_8e64_9705_9672),
                (565_184, 0x7eee_44d1_776c_6f56),
                (425_568, 0xb933_4e48_81f1_3730),
            ],
            "{sums:#x?}"
        );
    }

    #[test]
    fn a_model_says_its_whole_alphabet_in_one_clear_cycle() {
        for model in TinyModel::ALL {
            let gguf = model.gguf();
            let vocabulary = Vocabulary::new(model.recipe().spare_tokens);
            let alphabet: HashSet<usize> = vocabulary.alphabet.iter().copied().collect();
            let said = says(&matrix(&gguf, "token_embd.weight"), &matrix(&gguf, "output.weight"));
            for (token, (next, margin)) in said.iter().enumerate() {
                assert!(alphabet.contains(next), "{model:?} says {next} after {token}");
                assert!(*margin > 3.0, "{model:?} is not sure what follows {token}: {margin}");
            }
            if model == TinyModel::Draft {
                continue;
            }
            let mut token = vocabulary.end_of_turn;
            let heard: HashSet<usize> = (0..alphabet.len())
                .map(|_| {
                    token = said[token].0;
                    token
                })
                .collect();
            assert_eq!(heard, alphabet, "{model:?}");
        }
    }

    #[test]
    fn drafts_are_right_seven_times_out_of_ten() {
        let target = TinyModel::Dense.gguf();
        let truth = says(&matrix(&target, "token_embd.weight"), &matrix(&target, "output.weight"));
        let heads = [(TinyModel::Draft, "output.weight"), (TinyModel::Mtp, "blk.4.nextn.shared_head_head.weight")];
        for (model, head) in heads {
            let gguf = model.gguf();
            let guess = says(&matrix(&gguf, "token_embd.weight"), &matrix(&gguf, head));
            let vocabulary = Vocabulary::new(0);
            let right = vocabulary.alphabet.iter().filter(|&&token| guess[token].0 == truth[token].0).count();
            assert_eq!((right, vocabulary.alphabet.len()), (68, 97), "{model:?}");
        }
    }

    #[test]
    fn the_vocabulary_is_that_of_gpt_2_in_small() {
        let vocabulary = Vocabulary::new(200);
        assert_eq!(vocabulary.tokens.len(), 503);
        assert_eq!(vocabulary.tokens.iter().collect::<HashSet<_>>().len(), 503, "no token twice");
        assert_eq!(vocabulary.tokens[usize::from(b'A')], "A");
        // As in the published vocabulary: space, line feed, no-break space and soft hyphen.
        let symbols = [0x20, 0x0A, 0xA0, 0xAD].map(|byte: usize| vocabulary.tokens[byte].as_str());
        assert_eq!(symbols, ["\u{120}", "\u{10A}", "\u{142}", "\u{143}"]);
        assert!(vocabulary.alphabet.is_sorted());
    }

    #[test]
    fn half_precision_rounds_to_the_nearest_and_the_even() {
        for bits in 0..0x7C00_u16 {
            let value = value_of_half(bits);
            assert_eq!(half(value), bits);
            assert_eq!(half(-value), bits | 0x8000);
            // Exact: a half-precision number has 11 bits, a mean of neighbours 12. The last one's neighbour is 65536.
            let above = if bits == 0x7BFF { 65_536.0 } else { value_of_half(bits + 1) };
            let middle = f32::midpoint(value, above);
            assert_eq!(half(middle), if bits % 2 == 0 { bits } else { bits + 1 }, "between {value} and {above}");
            assert_eq!(half(middle.next_down()), bits, "just below {middle}");
            assert_eq!(half(middle.next_up()), bits + 1, "just above {middle}");
        }
        assert_eq!(half(f32::INFINITY), 0x7C00);
        assert_eq!(half(f32::MAX), 0x7C00);
        assert_eq!(half(f32::NEG_INFINITY), 0xFC00);
        assert_eq!(half(f32::MIN_POSITIVE), 0);
        assert_eq!(half(f32::NAN) & 0x7FFF, 0x7E00);
    }

    #[test]
    fn the_generator_is_splitmix64() {
        // The first numbers of the reference implementation for seed 1234567.
        let mut random = Random::new(1_234_567);
        assert_eq!([random.next(), random.next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
        let values = Random::new(1).normals(100_000, 2.0);
        let mean = values.iter().sum::<f32>() / 100_000.0;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f32>() / 100_000.0;
        assert!(mean.abs() < 0.03 && (variance - 4.0).abs() < 0.1, "{mean} {variance}");
    }
}
