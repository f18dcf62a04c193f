package htmlmd

import (
	"strings"
	"unicode/utf8"
)

// named are the named characters, each name followed by its character, sorted
// by name: those of HTML 4, and of the others of WHATWG HTML 13.5 those for
// letters, punctuation and signs of running text.
const named = "AEligÆAMP&AacuteÁAbreveĂAcircÂAgraveÀAlphaΑAmacrĀAogonĄApplyFunction\u2061AringÅAtildeÃAumlÄBetaΒCOPY©CacuteĆCcaronČCcedilÇChiΧ" +
	"Dagger‡DcaronĎDeltaΔDstrokĐETHÐEacuteÉEcaronĚEcircÊEdotĖEgraveÈEmacrĒEogonĘEpsilonΕEtaΗEumlËGT>GammaΓGbreveĞHat^IacuteÍIcircÎIdotİ" +
	"IgraveÌImacrĪInvisibleTimes\u2062IotaΙIumlÏKappaΚKcedilĶLT<LacuteĹLambdaΛLarr↞LcaronĽLcedilĻLongrightarrow⟹LstrokŁMuΜNacuteŃ" +
	"NcaronŇNcedilŅNoBreak\u2060NtildeÑNuΝOEligŒOacuteÓOcircÔOdblacŐOgraveÒOmacrŌOmegaΩOmicronΟOslashØOtildeÕOumlÖPhiΦPiΠPrime″PsiΨ" +
	"QUOT\"REG®RacuteŔRarr↠RcaronŘRhoΡSacuteŚScaronŠScedilŞSigmaΣTHORNÞTRADE™TauΤTcaronŤTcedilŢThetaΘUacuteÚUcircÛUdblacŰUgraveÙUmacrŪ" +
	"UogonŲUpsilonΥUringŮUumlÜVeryThinSpace\u200aXiΞYacuteÝYumlŸZacuteŹZcaronŽZdotŻZeroWidthSpace\u200bZetaΖaacuteáabreveăacircâacute´" +
	"aeligæagraveàalefsymℵalphaαamacrāamp&and∧ang∠aogonąapos'approx≈aringåast*asymp≈atildeãaumläbdquo„betaβbigstar★blacksquare▪block█" +
	"boxh─boxv│breve˘brvbar¦bsol\\bull•bullet•cacutećcap∩caronˇccarončccedilçcdotċcedil¸cent¢check✓checkmark✓chiχcircˆclubs♣colon:" +
	"comma,commat@cong≅copy©copysr℗crarr↵cross✗cup∪curren¤dArr⇓dagger†darr↓dash‐dcaronďdeg°deltaδdiams♦divide÷dollar$dot˙downarrow↓" +
	"dstrokđeacuteéecaroněecircêedotėegraveèellℓemacrēempty∅emptyset∅emsp\u2003emsp13\u2004emsp14\u2005ensp\u2002eogonęepsiεepsilonε" +
	"epsivϵequals=equiv≡etaηethðeumlëeuro€excl!exist∃female♀flat♭fnofƒforall∀frac12½frac13⅓frac14¼frac15⅕frac18⅛frac23⅔frac34¾frac38⅜" +
	"frac58⅝frac78⅞frasl⁄gammaγgbreveğge≥geq≥grave`gt>hArr⇔hairsp\u200aharr↔hbarℏhearts♥hellip…hyphen‐iacuteíicircîiexcl¡iff⇔igraveì" +
	"imacrīimageℑin∈infin∞inodotıint∫iotaιiquest¿isin∈iumlïkappaκkcedilķlArr⇐lacuteĺlambdaλlang⟨langle⟨laquo«larr←lbrace{lbrack[lcaronľ" +
	"lcedilļlceil⌈lcub{ldquo“ldquor„le≤leftarrow←leq≤lfloor⌊longrightarrow⟶lowast∗lowbar_loz◊lpar(lrm\u200elsaquo‹lsqb[lsquo‘lsquor‚" +
	"lstrokłlt<macr¯male♂map↦mdash—microµmiddot·minus−mldr…mp∓muμnabla∇nacuteńnatural♮nbsp\u00a0ncaronňncedilņndash–ne≠nexist∄ni∋nldr‥" +
	"not¬notin∉nsub⊄ntildeñnuνnum#numero№numsp\u2007oacuteóocircôodblacőoeligœograveòoline‾omacrōomegaωomicronοoplus⊕or∨ordfªordmº" +
	"oslashøotildeõotimes⊗oumlöpara¶part∂percnt%period.permil‰perp⊥phiφphivϕphone☎piπpivϖplanckℏplus+plusmn±pound£prime′prod∏prop∝psiψ" +
	"puncsp\u2008quest?quot\"rAarr⇛rArr⇒racuteŕradic√rang⟩rangle⟩raquo»rarr→rbrace}rbrack]rcaronřrceil⌉rcub}rdquo”realℜreg®rfloor⌋rhoρ" +
	"rightarrow→ring˚rlm\u200frpar)rsaquo›rsqb]rsquo’sacuteśsbquo‚scaronšscedilşsdot⋅sect§semi;setminus∖sharp♯shy\u00adsigmaσsigmafς" +
	"sim∼sol/spades♠square□star☆starf★straightphiϕsub⊂sube⊆subseteq⊆sum∑sung♪sup⊃sup1¹sup2²sup3³supe⊇supseteq⊇szligßtauτtcaronťtcedilţ" +
	"there4∴thetaθthetasymϑthetavϑthinsp\u2009thornþtilde˜times×trade™uArr⇑uacuteúuarr↑ucircûudblacűugraveùumacrūuml¨uogonųuparrow↑" +
	"upsihϒupsilonυuringůuumlüvarepsilonϵverbar|vert|weierp℘xiξyacuteýyen¥yumlÿzacuteźzcaronžzdotżzetaζzwj\u200dzwnj\u200c"

// entity returns the character that a name stands for, "" for an unknown name.
// It searches named by halves: letters and digits occur in names alone, so an
// entry begins wherever one follows another character.
func entity(name string) string {
	low, high := 0, len(named) // entries begin at both
	for low < high {
		start := (low + high) / 2
		for start > low && (isWord(named[start-1]) || !isWord(named[start])) {
			start--
		}
		end := start
		for isWord(named[end]) {
			end++
		}
		_, size := utf8.DecodeRuneInString(named[end:])
		switch c := strings.Compare(named[start:end], name); {
		case c == 0:
			return named[end : end+size]
		case c < 0:
			low = end + size
		default:
			high = start
		}
	}
	return ""
}

// maxName is the length of the longest name, in bytes.
const maxName = 32

func isWord(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
}

// unescape replaces character references (WHATWG HTML 13.2.5.72). In the value
// of an attribute one without a semicolon is left alone where more of a word
// follows: it is a parameter of an address.
func unescape(s string, attribute bool) string {
	i := strings.IndexByte(s, '&')
	if i < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i >= 0 {
		b.WriteString(s[:i])
		s = s[i:]
		text, n := reference(s, attribute)
		b.WriteString(text)
		s = s[n:]
		i = strings.IndexByte(s, '&')
	}
	b.WriteString(s)
	return b.String()
}

// reference reads what begins with an ampersand: the text that it stands for,
// and how many bytes of s that takes.
func reference(s string, attribute bool) (text string, n int) {
	if len(s) > 1 && s[1] == '#' {
		return number(s)
	}
	n = 1
	for n < len(s) && n <= maxName && isWord(s[n]) {
		n++
	}
	if n < len(s) && s[n] == ';' {
		if text = entity(s[1:n]); text != "" {
			return text, n + 1
		}
	}
	// The oldest names do without a semicolon.
	for ; n > 2; n-- {
		text = entity(s[1:n])
		if r, _ := utf8.DecodeRuneInString(text); text == "" || !(r >= 0xa0 && r <= 0xff || strings.ContainsRune("&<>\"", r)) {
			continue
		}
		if attribute && n < len(s) && (s[n] == '=' || isWord(s[n])) {
			break
		}
		return text, n
	}
	return "&", 1
}

// number reads a reference by number.
func number(s string) (text string, n int) {
	base, n := rune(10), 2
	if n < len(s) && s[n]|0x20 == 'x' {
		base, n = 16, 3
	}
	r, start := rune(0), n
	for ; n < len(s); n++ {
		d := rune(99)
		switch c := s[n]; {
		case c >= '0' && c <= '9':
			d = rune(c - '0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			d = rune(c|0x20-'a') + 10
		}
		if d >= base {
			break
		}
		if r = r*base + d; r > utf8.MaxRune {
			r = utf8.MaxRune + 1
		}
	}
	if n == start {
		return "&", 1
	}
	if n < len(s) && s[n] == ';' {
		n++
	}
	if r >= 0x80 && r < 0xa0 {
		r = windows1252[r-0x80]
	}
	if r == 0 || r > utf8.MaxRune {
		r = utf8.RuneError
	}
	return string(r), n // an invalid code point becomes U+FFFD
}
