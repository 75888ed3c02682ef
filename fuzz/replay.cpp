// Runs the fuzzer's checks where libFuzzer is not at hand: on files, and on mutations of them that
// are the same every time. Usage: replay MUTATIONS DICTIONARY FILE...
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

namespace {

constexpr size_t LONGEST_MUTATED = 600;  // longer ones take all the time

uint64_t state = 1;

// A number below `bound`, by splitmix64.
size_t draw(size_t bound) {
    uint64_t z = state += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return (z ^ (z >> 31)) % bound;
}

std::string read_file(const char *path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        std::fprintf(stderr, "cannot read %s\n", path);
        std::exit(2);
    }
    return {std::istreambuf_iterator<char>(file), {}};
}

// The quoted strings of a libFuzzer dictionary; of its escapes only \xNN is understood.
std::vector<std::string> read_dictionary(const char *path) {
    std::vector<std::string> words;
    const std::string text = read_file(path);
    for (size_t at = text.find('"'); at != std::string::npos; at = text.find('"', at + 1)) {
        std::string word;
        for (++at; text[at] != '"'; ++at) {
            if (text[at] != '\\') {
                word += text[at];
            } else {
                word += static_cast<char>(std::stoi(text.substr(at + 2, 2), nullptr, 16));
                at += 3;
            }
        }
        words.push_back(word);
    }
    return words;
}

std::string mutated(std::string text, const std::vector<std::string> &words,
                    const std::vector<std::string> &texts) {
    for (size_t changes = 1 + draw(4); changes > 0; --changes) {
        const size_t at = draw(text.size() + 1);
        const size_t length = draw(std::min<size_t>(text.size() - at, 20) + 1);
        const std::string &other = texts[draw(texts.size())];
        switch (draw(5)) {
            case 0: text.insert(at, words[draw(words.size())]); break;
            case 1: text.erase(at, length); break;
            case 2: text.insert(at, text.substr(at, length)); break;
            case 3: text.insert(at, other.substr(draw(other.size() + 1), length)); break;
            default:
                if (at < text.size()) text[at] = static_cast<char>(draw(256));
        }
    }
    return text;
}

void check(const std::string &text) {
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t *>(text.data()), text.size());
}

}  // namespace

int main(int argc, char **argv) {
    if (argc < 4) {
        std::fprintf(stderr, "usage: replay MUTATIONS DICTIONARY FILE...\n");
        return 2;
    }
    const long mutations = std::atol(argv[1]);
    const std::vector<std::string> words = read_dictionary(argv[2]);
    std::vector<std::string> texts;
    for (int i = 3; i < argc; ++i) {
        const std::string text = read_file(argv[i]);
        check(text);
        if (text.size() <= LONGEST_MUTATED) texts.push_back(text);
    }
    for (long i = 0; i < mutations; ++i) {
        const std::string text = mutated(texts[draw(texts.size())], words, texts);
        if (text.size() <= LONGEST_MUTATED) check(text);
    }
    std::printf("%d files and %ld mutations: nothing found\n", argc - 3, mutations);
    return 0;
}
