# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# awk -f names.awk HEADER: the public names that a header of the library declares, one a line: its types, concepts,
# functions, variables and aliases at namespace scope, outside of `detail`, and its macros. Specialisations, deduction
# guides, operators and members that are defined outside of their class add no name.
#
# No parser of C++: it knows the forms in which this library declares things.

# Code without comments and literals; what is left of a literal is "".
{
  line = $0
  if (line ~ /^[ \t]*#/ || in_directive) {
    if (match(line, /^[ \t]*#[ \t]*define[ \t]+[A-Za-z_0-9]+/)) {
      name = substr(line, RSTART, RLENGTH)
      sub(/.*[ \t]/, "", name)
      print name
    }
    in_directive = line ~ /\\$/
    next
  }
  gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
  gsub(/'([^'\\]|\\.)+'/, "\"\"", line)
  sub(/\/\/.*/, "", line)
  code = code " " line
}

END {
  gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, " ", code)
  depth = 0          # of namespaces that count
  declaration = ""   # its tokens so far, in one line
  parens = 0
  while (match(code, /[A-Za-z_][A-Za-z_0-9]*|::|""|[^ \t]/)) {
    token = substr(code, RSTART, RLENGTH)
    code = substr(code, RSTART + RLENGTH)
    if (token == "(") ++parens
    if (token == ")") --parens
    if (parens > 0 || (token != "{" && token != "}" && token != ";")) {
      declaration = declaration " " token
    } else if (token == "{") {
      if (declaration ~ /^ (inline )?namespace /) {
        if (declaration ~ / (detail|std)$/) skip_block()
        declaration = ""
      } else {
        skip_block()
        if (is_function(declaration)) {
          declare(declaration)
          declaration = ""
        } else {
          declaration = declaration " {}"
        }
      }
    } else {
      if (token == ";") declare(declaration)
      declaration = ""
    }
  }
}

# Past the brace that closes the one just read.
function skip_block(    open, at) {
  for (open = 1; open > 0 && match(code, /[{}]/); code = substr(code, RSTART + 1)) {
    open += substr(code, RSTART, 1) == "{" ? 1 : -1
  }
}

# Whether a block after these tokens is a function's body, which needs no semicolon.
function is_function(text) {
  text = outline(text)
  return text ~ / @/ && text !~ / (=|class|struct|enum|union|concept) / && text !~ / requires @$/
}

# The tokens without what stands in parentheses and in angle brackets: ` T f @` of `T f(int i = 0)`, ` Dict<>` of
# `Dict<Entry<K, T>...>`.
function outline(text) {
  while (match(text, /\([^()]*\)/)) text = substr(text, 1, RSTART - 1) "@" substr(text, RSTART + RLENGTH)
  gsub(/ operator < <| operator < = >| operator <| operator >/, " operator", text)
  gsub(/- >/, "->", text)
  while (match(text, / <[^<>]*>/)) text = substr(text, 1, RSTART - 1) "`" substr(text, RSTART + RLENGTH)
  gsub(/`/, "<>", text)
  return text
}

function declare(text,    words) {
  text = outline(text)
  gsub(/ \[ \[[^]]*\] \]/, "", text)
  if (text == "" || text ~ /^ (static_assert|using namespace|friend|namespace)( |$|@)/) return
  if (match(text, / (concept|using) [A-Za-z_0-9]+ =/)) {
    split(substr(text, RSTART, RLENGTH), words, " ")
    print words[2]
  } else if (match(text, / (class|struct|enum|union) .*/)) {
    text = substr(text, RSTART)
    sub(/ (: |\{).*/, "", text)
    sub(/ final$/, "", text)
    if (text !~ />$/) print last_word(text)
  } else if (text ~ / operator/) {
    if (match(text, / operator "" [A-Za-z_0-9]+/)) print last_word(substr(text, RSTART, RLENGTH))
  } else {
    gsub(/ (requires|alignas|noexcept|decltype) @( \{\})?/, "", text)
    sub(/ (@|=|\{).*/, "", text)
    if (text !~ />$/ && text !~ / :: [A-Za-z_0-9]+$/) print last_word(text)
  }
}

function last_word(text,    words, n) {
  n = split(text, words, " ")
  return words[n]
}
